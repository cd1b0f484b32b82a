import { setTimeout as delay } from "node:timers/promises";
import { type Static, Type } from "typebox";
import { readBlockDevices, readNetworkDevices } from "./devices.ts";
import { readMounts } from "./mounts.ts";
import { readProcesses } from "./processes.ts";
import { readSockets } from "./sockets.ts";
import { listCgroups, listFiles } from "./trees.ts";

const strict = { additionalProperties: false } as const;
const nullableText = Type.Union([Type.String(), Type.Null()]);

/** A process, kernel threads left out. `startTime` is in clock ticks since boot; `namespaces` are `kind:[inode]`. */
export const SeenProcess = Type.Object(
  {
    pid: Type.Integer(),
    startTime: Type.Integer(),
    parent: Type.Integer(),
    name: Type.String(),
    executable: nullableText,
    commandLine: Type.String(),
    directory: nullableText,
    cgroups: Type.Array(Type.String()),
    namespaces: Type.Array(Type.String()),
    /** Namespaces that it holds by an open file only. */
    heldNamespaces: Type.Array(Type.String()),
    socketInodes: Type.Array(Type.Integer()),
  },
  strict,
);
export type SeenProcess = Static<typeof SeenProcess>;

/** A mount of one mount namespace. `root` is the part of the source that is mounted; of nsfs it is `kind:[inode]`. */
export const SeenMount = Type.Object(
  {
    namespace: Type.String(),
    mountPoint: Type.String(),
    type: Type.String(),
    source: Type.String(),
    root: Type.String(),
    options: Type.String(),
  },
  strict,
);
export type SeenMount = Static<typeof SeenMount>;

export const SeenDevice = Type.Object(
  { name: Type.String(), inUse: Type.Boolean(), backing: nullableText },
  strict,
);
export type SeenDevice = Static<typeof SeenDevice>;

export const SeenNetworkDevice = Type.Object({ namespace: Type.String(), name: Type.String() }, strict);
export type SeenNetworkDevice = Static<typeof SeenNetworkDevice>;

/** A socket that listens or, of unix, is bound to a name. `address` is a path, `@name`, or `address:port` in hexadecimal. */
export const SeenSocket = Type.Object(
  { kind: Type.String(), address: Type.String(), inode: Type.Integer(), namespace: Type.String() },
  strict,
);
export type SeenSocket = Static<typeof SeenSocket>;

/** All that could leak, at one moment. */
export const HostSnapshot = Type.Object(
  {
    formatVersion: Type.Literal(1),
    takenAtMs: Type.Integer(),
    /** The process that looked and its ancestors: never leaks. */
    observers: Type.Array(Type.Integer()),
    hostMountNamespace: Type.String(),
    hostNetworkNamespace: Type.String(),
    processes: Type.Array(SeenProcess),
    mounts: Type.Array(SeenMount),
    cgroups: Type.Array(Type.String()),
    networkDevices: Type.Array(SeenNetworkDevice),
    blockDevices: Type.Array(SeenDevice),
    sockets: Type.Array(SeenSocket),
    files: Type.Array(Type.String()),
    filesTruncated: Type.Boolean(),
  },
  strict,
);
export type HostSnapshot = Static<typeof HostSnapshot>;

/**
 * Looks at the host. `directories` are the data and run directories whose files are listed, all else is seen anyway. Some tens of
 * milliseconds with few processes, blocking; needs root to see the processes of others.
 */
export function takeSnapshot(directories: readonly string[]): HostSnapshot {
  const seen = readProcesses();
  const mounts = readMounts(seen.processes);
  const files = listFiles(directories);
  return {
    formatVersion: 1,
    takenAtMs: Date.now(),
    observers: seen.observers,
    hostMountNamespace: seen.own.mnt,
    hostNetworkNamespace: seen.own.net,
    processes: seen.processes,
    mounts,
    cgroups: listCgroups(mounts.filter((mount) => mount.namespace === seen.own.mnt)),
    networkDevices: readNetworkDevices(seen.processes),
    blockDevices: readBlockDevices(),
    sockets: readSockets(seen.processes),
    files: files.paths,
    filesTruncated: files.truncated,
  };
}

const settlePauseMs = 100;

/**
 * Looks again until `find` finds nothing or `settleMs` are over, since the kernel takes some things away after their last user;
 * returns what it found last.
 */
export async function settle<Found>(
  find: () => readonly Found[],
  settleMs: number,
  signal: AbortSignal,
): Promise<readonly Found[]> {
  const deadline = performance.now() + settleMs;
  for (;;) {
    const found = find();
    if (found.length === 0 || performance.now() >= deadline) return found;
    await delay(settlePauseMs, undefined, { signal });
  }
}
