import { readFileSync } from "node:fs";
import type { SeenMount, SeenProcess } from "./snapshot.ts";

/** The mounts of every mount namespace that has a process, each namespace once. */
export function readMounts(processes: readonly SeenProcess[]): SeenMount[] {
  const mounts: SeenMount[] = [];
  for (const [namespace, pids] of membersOf(processes, "mnt")) {
    const text = firstReadable(pids.map((pid) => `/proc/${pid}/mountinfo`));
    for (const line of text.split("\n")) {
      const mount = parseMountInfo(line);
      if (mount !== undefined) mounts.push({ namespace, ...mount });
    }
  }
  return mounts;
}

/** The processes of each namespace of one kind (`mnt`, `net`, ...), by the namespace's name. */
export function membersOf(processes: readonly SeenProcess[], kind: string): Map<string, number[]> {
  const members = new Map<string, number[]>();
  for (const seen of processes) {
    const namespace = seen.namespaces.find((name) => name.startsWith(`${kind}:[`));
    if (namespace === undefined) continue;
    const pids = members.get(namespace);
    if (pids === undefined) members.set(namespace, [seen.pid]);
    else pids.push(seen.pid);
  }
  return members;
}

/** The first of the files that can be read and is not empty: their processes may end at any time. */
export function firstReadable(paths: readonly string[]): string {
  for (const path of paths) {
    try {
      const text = readFileSync(path, "utf8");
      if (text !== "") return text;
    } catch {
      // The process ended: another of the namespace will do.
    }
  }
  return "";
}

/** One line of /proc/<pid>/mountinfo; undefined for anything else. */
export function parseMountInfo(line: string): Omit<SeenMount, "namespace"> | undefined {
  const separator = line.indexOf(" - ");
  if (separator < 0) return undefined;
  const [, , , root, mountPoint] = line.slice(0, separator).split(" ");
  const [type, source, options] = line.slice(separator + 3).split(" ");
  if (root === undefined || mountPoint === undefined || type === undefined) return undefined;
  return {
    mountPoint: unescapeOctal(mountPoint),
    type,
    source: unescapeOctal(source ?? ""),
    root: unescapeOctal(root),
    options: unescapeOctal(options ?? ""),
  };
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
