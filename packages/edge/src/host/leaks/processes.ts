import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { SeenProcess } from "./snapshot.ts";

export interface SeenProcesses {
  readonly processes: SeenProcess[];
  readonly observers: number[];
  readonly own: { readonly mnt: string; readonly net: string };
}

const commandLineLengthMax = 1_024;
const kernelThreadParent = 2;
const namespacePattern = /^[a-z_]+:\[\d+\]$/;

/** Every process but kernel threads. One that ends while it is read is left out. */
export function readProcesses(): SeenProcesses {
  const processes: SeenProcess[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const seen = readProcess(Number(name));
    if (seen !== undefined) processes.push(seen);
  }
  return {
    processes,
    observers: ancestry(processes, process.pid),
    own: { mnt: readlinkSync("/proc/self/ns/mnt"), net: readlinkSync("/proc/self/ns/net") },
  };
}

function readProcess(pid: number): SeenProcess | undefined {
  const stat = optional(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  if (stat === null) return undefined;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const parent = Number(fields[1]);
  if (pid === kernelThreadParent || parent === kernelThreadParent) return undefined;
  const namespaces = readNamespaces(pid);
  const open = readOpenFiles(pid);
  return {
    pid,
    startTime: Number(fields[19]),
    parent,
    name: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")),
    executable: optional(() => readlinkSync(`/proc/${pid}/exe`)),
    commandLine: (optional(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? "")
      .replaceAll("\0", " ")
      .trim()
      .slice(0, commandLineLengthMax),
    directory: optional(() => readlinkSync(`/proc/${pid}/cwd`)),
    cgroups: (optional(() => readFileSync(`/proc/${pid}/cgroup`, "utf8")) ?? "")
      .split("\n")
      .map((line) => line.split(":").slice(2).join(":"))
      .filter((path) => path !== "" && path !== "/"),
    namespaces,
    heldNamespaces: open.namespaces.filter((namespace) => !namespaces.includes(namespace)),
    socketInodes: open.sockets,
  };
}

function readNamespaces(pid: number): string[] {
  const directory = `/proc/${pid}/ns`;
  const names = optional(() => readdirSync(directory)) ?? [];
  const links = names.map((name) => optional(() => readlinkSync(`${directory}/${name}`)));
  return [...new Set(links.filter((link) => link !== null))].toSorted();
}

function readOpenFiles(pid: number): { namespaces: string[]; sockets: number[] } {
  const directory = `/proc/${pid}/fd`;
  const namespaces = new Set<string>();
  const sockets: number[] = [];
  for (const name of optional(() => readdirSync(directory)) ?? []) {
    const target = optional(() => readlinkSync(`${directory}/${name}`));
    if (target === null) continue;
    if (namespacePattern.test(target)) namespaces.add(target);
    const socket = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (socket !== undefined) sockets.push(Number(socket));
  }
  return {
    namespaces: [...namespaces].filter((link) => !/^(pipe|socket|anon_inode):/.test(link)),
    sockets,
  };
}

function ancestry(processes: readonly SeenProcess[], pid: number): number[] {
  const parents = new Map(processes.map((seen) => [seen.pid, seen.parent]));
  const chain: number[] = [];
  for (let current: number | undefined = pid; current !== undefined && current > 0; ) {
    chain.push(current);
    current = parents.get(current);
  }
  return chain;
}

/** What a process that ended meanwhile, or a zombie, no longer has is null. */
function optional<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    // Gone, or not there for this kind of process.
    return null;
  }
}
