import type { HostSnapshot } from "@dsec/edge";

/**
 * The look `before` with the platform's own daemons as they are `now`: one that was killed and started again is no leak. Daemons
 * are the given processes and the spawners of `runDir`, with their sockets.
 */
export function withDaemons(
  before: HostSnapshot,
  now: HostSnapshot,
  { pids, runDir }: { readonly pids: readonly number[]; readonly runDir: string },
): HostSnapshot {
  const daemons = now.processes.filter((seen) => pids.includes(seen.pid));
  const hostPidNamespaces = new Set(daemons.flatMap((seen) => seen.namespaces.filter(isPidNamespace)));
  const spawners = now.processes.filter(
    (seen) =>
      seen.commandLine.includes("spawner") &&
      seen.commandLine.includes(runDir) &&
      // An init is a copy of its spawner, in a pid namespace of its own.
      seen.namespaces.some((namespace) => hostPidNamespaces.has(namespace)),
  );
  const processes = [...daemons, ...spawners];
  const inodes = new Set(processes.flatMap((seen) => seen.socketInodes));
  return {
    ...before,
    processes: [...before.processes, ...processes],
    sockets: [...before.sockets, ...now.sockets.filter((socket) => inodes.has(socket.inode))],
  };
}

function isPidNamespace(namespace: string): boolean {
  return namespace.startsWith("pid:");
}
