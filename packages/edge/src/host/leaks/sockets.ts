import { firstReadable, membersOf } from "./mounts.ts";
import type { SeenProcess, SeenSocket } from "./snapshot.ts";

const tcpListening = "0A";

/** Named unix sockets and listening TCP sockets of every network namespace that has a process. */
export function readSockets(processes: readonly SeenProcess[]): SeenSocket[] {
  const sockets: SeenSocket[] = [];
  for (const [namespace, pids] of membersOf(processes, "net")) {
    const table = (name: string): string[] =>
      firstReadable(pids.map((pid) => `/proc/${pid}/net/${name}`))
        .split("\n")
        .slice(1);
    for (const line of table("unix")) {
      const socket = parseUnix(line);
      if (socket !== undefined) sockets.push({ namespace, ...socket });
    }
    for (const kind of ["tcp", "tcp6"]) {
      for (const line of table(kind)) {
        const socket = parseTcp(kind, line);
        if (socket !== undefined) sockets.push({ namespace, ...socket });
      }
    }
  }
  return sockets;
}

/** A line of /proc/net/unix; undefined for a socket without a name. */
export function parseUnix(line: string): Omit<SeenSocket, "namespace"> | undefined {
  const match = /^\S+ \S+ \S+ \S+ \S+ \S+ +(\d+) (.+)$/.exec(line);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  return { kind: "unix", address: match[2], inode: Number(match[1]) };
}

/** A line of /proc/net/tcp or tcp6; undefined for a socket that does not listen. */
export function parseTcp(kind: string, line: string): Omit<SeenSocket, "namespace"> | undefined {
  const fields = line.trim().split(/\s+/);
  const [, address, , state] = fields;
  const inode = Number(fields[9]);
  if (address === undefined || state !== tcpListening || !Number.isInteger(inode)) return undefined;
  return { kind, address, inode };
}
