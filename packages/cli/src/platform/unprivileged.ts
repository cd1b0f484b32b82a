import { lchownSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The user that control runs as: `dsec` where the site made one, else `nobody`. Undefined when this process is not root, or when that
 * user cannot read one of `files` (a clone below /root) or reach one of `directories`: control then runs as the caller.
 */
export function findUnprivilegedUser(needed: {
  readonly files: readonly string[];
  readonly directories: readonly string[];
}): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const passwd = readFileSync("/etc/passwd", "utf8");
  const user = userNamed(passwd, "dsec") ?? userNamed(passwd, "nobody");
  const isFine = needed.files.every(isReadableByAll) && needed.directories.every(canBeReachedByAll);
  return user !== undefined && isFine ? user : undefined;
}

/** Makes a directory with all in it the user's, whoever had it before; links are given, not followed. */
export function giveTree(directory: string, { uid, gid }: SystemUser): void {
  lchownSync(directory, uid, gid);
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    lchownSync(join(directory, name), uid, gid);
  }
}

/** A user of passwd(5) text. */
export function userNamed(passwd: string, name: string): SystemUser | undefined {
  const fields = passwd
    .split("\n")
    .map((line) => line.split(":"))
    .find(([first]) => first === name);
  const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
  return Number.isInteger(uid) && Number.isInteger(gid) ? { uid, gid } : undefined;
}

function isReadableByAll(path: string): boolean {
  return canBeReachedByAll(path) && (statSync(path).mode & 0o004) !== 0;
}

function canBeReachedByAll(path: string): boolean {
  for (let folder = dirname(path); folder !== "/"; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
  }
  return true;
}
