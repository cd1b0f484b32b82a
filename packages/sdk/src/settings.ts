import { DsecError } from "./errors.ts";

/** Where the platform is and who calls it. */
export interface Settings {
  /** At least one, without a slash at the end; the first is tried first. */
  readonly urls: readonly string[];
  readonly key: string;
}

interface NodeLike {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly getBuiltinModule?: (name: string) => unknown;
}

/**
 * Address and key: the options; else DSEC_URL (several by commas) and DSEC_KEY; else the file that `dsec up` writes on
 * this machine (`up.json` in DSEC_RUN_DIR, default /run/dsec). Throws `unauthenticated` when there is none.
 */
export function findSettings(options: {
  readonly url?: string | readonly string[];
  readonly key?: string;
}): Settings {
  const node = (globalThis as { process?: NodeLike }).process;
  const url = options.url ?? node?.env["DSEC_URL"];
  const key = options.key ?? node?.env["DSEC_KEY"];
  const up = url === undefined || key === undefined ? readUpFile(node) : undefined;
  const urls = splitUrls(url ?? up?.url ?? []);
  const found = key ?? up?.key;
  if (urls.length === 0 || found === undefined) {
    throw new DsecError(
      "unauthenticated",
      "Cannot find the platform: give url and key, set DSEC_URL and DSEC_KEY, or run `dsec up` on this machine",
    );
  }
  return { urls, key: found };
}

function splitUrls(url: string | readonly string[]): readonly string[] {
  const list = typeof url === "string" ? url.split(",") : url;
  return list.map((one) => one.trim().replace(/\/+$/, "")).filter((one) => one !== "");
}

interface FileSystem {
  readFileSync(path: string, encoding: "utf8"): string;
}

function readUpFile(node: NodeLike | undefined): { readonly url: string; readonly key: string } | undefined {
  const files = node?.getBuiltinModule?.("node:fs") as FileSystem | undefined;
  if (node === undefined || files === undefined) return undefined;
  const path = `${node.env["DSEC_RUN_DIR"] ?? "/run/dsec"}/up.json`;
  try {
    const up = JSON.parse(files.readFileSync(path, "utf8")) as Record<string, unknown>;
    const { url, keyFile } = up;
    if (typeof url !== "string" || typeof keyFile !== "string") return undefined;
    return { url, key: files.readFileSync(keyFile, "utf8").trim() };
  } catch {
    return undefined; // No platform on this machine, or not ours to read: the caller says what to give instead.
  }
}
