import { parseJson } from "@dsec/kit";
import { type Static, Type } from "typebox";
import { OperationError } from "../chronus/channel.ts";
import type { InitFiles } from "../chronus/init-files.ts";
import type { Ledger } from "../ledger/ledger.ts";

const passwdBytesMax = 1024 * 1024;
const usersMax = 1_024;
const imagesKept = 1_024;

const Account = Type.Object(
  { name: Type.String(), uid: Type.Integer(), home: Type.String() },
  { additionalProperties: false },
);
const ImageFacts = Type.Object(
  { hasBash: Type.Boolean(), accounts: Type.Array(Account, { maxItems: usersMax }) },
  { additionalProperties: false },
);
/** What a set of layers holds that commands need to know. */
export type ImageFacts = Static<typeof ImageFacts>;

/**
 * Facts of images, read once through the first sandbox of each set of layers, before any command of an agent ran in it. Kept in the
 * ledger, so that nothing an agent changes later is ever read as a fact.
 */
export class ImageFactsReader {
  readonly #ledger: Ledger;
  readonly #known = new Map<string, Promise<ImageFacts>>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  async of(layers: readonly string[], files: InitFiles): Promise<ImageFacts> {
    const key = layers.join(" ");
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const facts = this.#read(key, files);
    if (this.#known.size >= imagesKept) this.#known.clear();
    this.#known.set(key, facts);
    facts.catch(() => this.#known.delete(key));
    return facts;
  }

  async #read(key: string, files: InitFiles): Promise<ImageFacts> {
    const kept = this.#ledger.imageFacts(key);
    if (kept !== undefined) return parseJson(ImageFacts, kept, "ledger record");
    const facts = {
      hasBash: await isThere(files, "/bin/bash"),
      accounts: parsePasswd(await readPasswd(files)),
    };
    await this.#ledger.keepImageFacts(key, JSON.stringify(facts));
    return facts;
  }
}

async function isThere(files: InitFiles, path: string): Promise<boolean> {
  try {
    await files.stat({ path, user: { uid: 0, gid: 0 }, follow: true });
    return true;
  } catch (error) {
    if (error instanceof OperationError && error.code === "not_found") return false;
    throw error;
  }
}

async function readPasswd(files: InitFiles): Promise<string> {
  try {
    const request = { path: "/etc/passwd", user: { uid: 0, gid: 0 }, offset: 0, length: passwdBytesMax };
    const { chunks } = await files.read(request);
    return Buffer.concat(await Array.fromAsync(chunks)).toString("utf8");
  } catch (error) {
    if (error instanceof OperationError && error.code === "not_found") return "";
    throw error;
  }
}

/** Accounts of an /etc/passwd; lines that are none are left out. */
export function parsePasswd(text: string): ImageFacts["accounts"] {
  return text
    .split("\n")
    .slice(0, usersMax)
    .flatMap((line) => {
      const [name, , uid, , , home] = line.split(":");
      const isAccount = name !== undefined && home !== undefined && /^\d{1,5}$/.test(uid ?? "");
      return isAccount ? [{ name, uid: Number(uid), home }] : [];
    });
}
