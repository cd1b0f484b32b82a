import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The user that control runs as: `dsec` where the site made one, else `nobody`. Undefined when this process is not root, or when that
 * user cannot read the program (a clone below /root): control then runs as the caller.
 */
export function findUnprivilegedUser(programs: readonly string[]): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const passwd = readFileSync("/etc/passwd", "utf8");
  const user = userNamed(passwd, "dsec") ?? userNamed(passwd, "nobody");
  return user !== undefined && programs.every(isReadableByAll) ? user : undefined;
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
  for (let folder = dirname(path); folder !== "/"; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
  }
  return (statSync(path).mode & 0o004) !== 0;
}
