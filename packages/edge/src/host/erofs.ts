import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { PlatformError } from "@dsec/contracts";
import { runProgram, scrubbedEnvironment } from "./process.ts";

/** A file of a layer: SHA-256 as 64 hexadecimal digits, and its size. */
export interface FileDigest {
  readonly sha256: string;
  readonly bytes: number;
}

/** Bytes of a data chunk; layers that are merged must agree on it. */
const chunkBytes = 4_096;
const idMax = 65_535;
/** One UUID for all, so that the same tree gives the same bytes. */
/**
 * Seconds since the epoch, far ahead: mkfs.erofs takes it as its build time and as the upper bound of the files' times, so that these
 * stay (`-T` would set them all).
 */
const buildTime = "4102444800";
const fixedUuid = "00000000-0000-0000-0000-000000000000";

/**
 * Packs `directory` as an EROFS pair: `meta` has the tree, `data` the content in chunks. The same tree gives the same
 * bytes. Symbolic links are kept, never followed.
 */
export async function packDirectory(
  directory: string,
  target: { readonly meta: string; readonly data: string },
  signal: AbortSignal,
): Promise<void> {
  await runProgram(
    [
      "mkfs.erofs",
      "-Eforce-inode-extended",
      `--chunksize=${chunkBytes}`,
      `--blobdev=${target.data}`,
      "-U",
      fixedUuid,
      "--quiet",
      target.meta,
      directory,
    ],
    { signal, env: { ...scrubbedEnvironment, SOURCE_DATE_EPOCH: buildTime } },
  );
}

/** Refuses what a layer must not have: device nodes (but whiteouts), sockets, owners that no sandbox can map. */
export async function checkLayerTree(directory: string, signal: AbortSignal): Promise<void> {
  const unwanted = [
    "-type",
    "b",
    "-o",
    "-type",
    "s",
    "-o",
    "-type",
    "c",
    "-o",
    "-uid",
    `+${idMax}`,
    "-o",
    "-gid",
    `+${idMax}`,
  ];
  const { stdout } = await runProgram(
    ["find", directory, "(", ...unwanted, ")", "-printf", "%y %U %G %P\\0"],
    { signal },
  );
  for (const line of stdout.split("\0").filter((text) => text !== "")) {
    const [kind = "", uid, gid, ...name] = line.split(" ");
    const path = name.join(" ");
    if (Number(uid) > idMax || Number(gid) > idMax) throw refused(path, "owned by an id of 65,536 or more");
    // A character device 0:0 is an overlay whiteout.
    if (kind === "c" && (await lstat(join(directory, path))).rdev === 0) continue;
    throw refused(path, "a device or socket");
  }
}

/** Reads the whole file. */
export async function digestFile(path: string, signal: AbortSignal): Promise<FileDigest> {
  const hash = createHash("sha256");
  let bytes = 0;
  await pipeline(
    createReadStream(path, { highWaterMark: 1024 * 1024 }),
    async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.length;
      }
    },
    { signal },
  );
  return { sha256: hash.digest("hex"), bytes };
}

function refused(path: string, reason: string): PlatformError {
  return new PlatformError("invalid_request", `Cannot make a layer: "${path}" is ${reason}`);
}
