import type { HostSnapshot, SeenMount, SeenProcess } from "./snapshot.ts";

export const leakKinds = [
  "process",
  "mount",
  "cgroup",
  "namespace",
  "network_device",
  "block_device",
  "socket",
  "file",
] as const;
export type LeakKind = (typeof leakKinds)[number];

/** Something that was not there before and belongs to the platform. */
export interface Leak {
  readonly kind: LeakKind;
  /** The thing, for people; the same thing has the same text in every comparison. */
  readonly what: string;
  /** Why it is taken for the platform's. */
  readonly evidence: string;
}

/** What counts as the platform's. */
export interface LeakScope {
  /** Its data and run directories, absolute. */
  readonly directories: readonly string[];
  /** Its nodes; null: every node's, also of other platforms on this host. */
  readonly nodeIds: readonly string[] | null;
  /**
   * Takes new mounts and network devices of the host, block devices and ownerless namespaces for leaks without further evidence: right where
   * nothing else makes such things meanwhile.
   */
  readonly aloneOnHost: boolean;
  /** Leaks to leave out, matched against `what`; for example the layers that a store keeps. */
  readonly ignore: readonly RegExp[];
}

/** What `after` has and `before` had not, and belongs to the platform. */
export function compareSnapshots(before: HostSnapshot, after: HostSnapshot, scope: LeakScope): Leak[] {
  const comparison = new Comparison(before, after, scope);
  const leaks = [
    ...comparison.processes(),
    ...comparison.mounts(),
    ...comparison.cgroups(),
    ...comparison.namespaces(),
    ...comparison.networkDevices(),
    ...comparison.blockDevices(),
    ...comparison.sockets(),
    ...comparison.files(),
  ];
  return leaks.filter((leak) => !scope.ignore.some((pattern) => pattern.test(leak.what)));
}

class Comparison {
  readonly #before: HostSnapshot;
  readonly #after: HostSnapshot;
  readonly #scope: LeakScope;
  /** New processes that are the platform's, with the evidence. */
  readonly #leaked: ReadonlyMap<SeenProcess, string>;

  constructor(before: HostSnapshot, after: HostSnapshot, scope: LeakScope) {
    this.#before = before;
    this.#after = after;
    this.#scope = scope;
    this.#leaked = this.#leakedProcesses();
  }

  processes(): Leak[] {
    return [...this.#leaked].map(([seen, evidence]) => ({
      kind: "process",
      what: `process ${seen.pid} ${seen.name}: ${seen.commandLine}`,
      evidence,
    }));
  }

  mounts(): Leak[] {
    const fresh = added(this.#before.mounts, this.#after.mounts, mountKey);
    return fresh.flatMap((mount) => {
      const evidence = this.#mountEvidence(mount);
      const what = `mount of ${mount.type} ${mount.source} at ${mount.mountPoint} in ${mount.namespace}`;
      return evidence === undefined ? [] : [{ kind: "mount", what, evidence }];
    });
  }

  cgroups(): Leak[] {
    const fresh = added(this.#before.cgroups, this.#after.cgroups, (path) => path);
    return fresh
      .filter((path) => this.#isOurCgroup(path))
      .map((path) => ({ kind: "cgroup", what: `cgroup ${path}`, evidence: "its name" }));
  }

  namespaces(): Leak[] {
    const known = new Set(holdersOf(this.#before).keys());
    return [...holdersOf(this.#after)].flatMap(([namespace, holders]) => {
      if (known.has(namespace)) return [];
      const evidence = this.#namespaceEvidence(holders);
      return evidence === undefined ? [] : [{ kind: "namespace", what: `namespace ${namespace}`, evidence }];
    });
  }

  networkDevices(): Leak[] {
    const fresh = added(
      this.#before.networkDevices,
      this.#after.networkDevices,
      (device) => `${device.namespace} ${device.name}`,
    );
    const old = new Set(this.#before.processes.flatMap((seen) => seen.namespaces));
    return fresh.flatMap((device) => {
      // A device of a namespace that is new itself goes with it.
      if (!old.has(device.namespace)) return [];
      const what = `network device ${device.name} in ${device.namespace}`;
      if (/^ds[a-z2-7]/.test(device.name)) return [{ kind: "network_device", what, evidence: "its name" }];
      return this.#scope.aloneOnHost ? [{ kind: "network_device", what, evidence: "new on this host" }] : [];
    });
  }

  blockDevices(): Leak[] {
    const fresh = added(
      this.#before.blockDevices,
      this.#after.blockDevices,
      (device) => `${device.name} ${device.inUse} ${device.backing}`,
    );
    return fresh.flatMap((device) => {
      const what = `block device ${device.name}${device.backing === null ? "" : ` of ${device.backing}`}`;
      if (device.backing !== null && this.#isOurPath(device.backing))
        return [{ kind: "block_device", what, evidence: "its file" }];
      return this.#scope.aloneOnHost ? [{ kind: "block_device", what, evidence: "new on this host" }] : [];
    });
  }

  sockets(): Leak[] {
    const owners = new Map<number, SeenProcess>();
    for (const seen of this.#leaked.keys()) for (const inode of seen.socketInodes) owners.set(inode, seen);
    const fresh = added(this.#before.sockets, this.#after.sockets, (socket) => String(socket.inode));
    return fresh.flatMap((socket) => {
      const what = `${socket.kind} socket ${socket.address}`;
      const owner = owners.get(socket.inode);
      if (owner !== undefined)
        return [{ kind: "socket", what, evidence: `open in process ${owner.pid} ${owner.name}` }];
      return this.#isOurPath(socket.address) ? [{ kind: "socket", what, evidence: "its path" }] : [];
    });
  }

  files(): Leak[] {
    const fresh = added(this.#before.files, this.#after.files, (path) => path);
    return fresh.map((path) => ({ kind: "file", what: `file ${path}`, evidence: "its path" }));
  }

  #leakedProcesses(): Map<SeenProcess, string> {
    const observers = new Set(this.#after.observers);
    const fresh = added(this.#before.processes, this.#after.processes, processKey).filter(
      (seen) => !observers.has(seen.pid),
    );
    const leaked = new Map<SeenProcess, string>();
    const pids = new Set<number>();
    for (let found = true; found; ) {
      found = false;
      for (const seen of fresh) {
        const evidence = leaked.has(seen) ? undefined : this.#processEvidence(seen, pids);
        if (evidence === undefined) continue;
        leaked.set(seen, evidence);
        pids.add(seen.pid);
        // Its children may have been looked at before it.
        found = true;
      }
    }
    return leaked;
  }

  #processEvidence(seen: SeenProcess, leakedPids: ReadonlySet<number>): string | undefined {
    const cgroup = seen.cgroups.find((path) => this.#isOurCgroup(path));
    if (cgroup !== undefined) return `in cgroup ${cgroup}`;
    if (seen.executable !== null && this.#isOurPath(seen.executable)) return "its program's path";
    if (seen.directory !== null && this.#isOurPath(seen.directory)) return "its working directory";
    if (this.#scope.directories.some((directory) => seen.commandLine.includes(directory)))
      return "a directory in its arguments";
    if (this.#scope.nodeIds === null && seen.name === "chronus") return "its name";
    return leakedPids.has(seen.parent) ? `started by process ${seen.parent}` : undefined;
  }

  #mountEvidence(mount: SeenMount): string | undefined {
    if (this.#isOurPath(mount.mountPoint)) return "its mount point";
    if (this.#isOurPath(mount.source)) return "its source";
    if (mount.type !== "cgroup" && mount.type !== "cgroup2" && this.#isOurPath(mount.root)) return "its root";
    if (this.#scope.directories.some((directory) => mount.options.includes(`${directory}/`)))
      return "a directory in its options";
    if (!this.#scope.aloneOnHost) return undefined;
    // A mount of a namespace that is new itself goes with it.
    const old = this.#before.processes.some((seen) => seen.namespaces.includes(mount.namespace));
    return old ? "new on this host" : undefined;
  }

  #namespaceEvidence(holders: Holders): string | undefined {
    const mount = holders.mounts.find((held) => this.#mountEvidence(held) !== undefined);
    if (mount !== undefined) return `pinned at ${mount.mountPoint}`;
    for (const seen of holders.processes) {
      if (this.#leaked.has(seen)) return `held by process ${seen.pid} ${seen.name}`;
    }
    if (!this.#scope.aloneOnHost) return undefined;
    const observers = new Set(this.#after.observers);
    const known = new Set(this.#before.processes.map(processKey));
    const explained = holders.processes.some(
      (seen) => observers.has(seen.pid) || known.has(processKey(seen)),
    );
    return explained ? undefined : "new on this host, and no process from before holds it";
  }

  #isOurPath(path: string): boolean {
    const plain = path.replace(/ \(deleted\)$/, "");
    return this.#scope.directories.some(
      (directory) => plain === directory || plain.startsWith(`${directory}/`),
    );
  }

  #isOurCgroup(path: string): boolean {
    const parts = path.split("/");
    const place = parts.indexOf("dsec");
    if (place < 0) return false;
    const node = parts[place + 1];
    if (this.#scope.nodeIds === null) return true;
    return node !== undefined && this.#scope.nodeIds.includes(node);
  }
}

interface Holders {
  readonly processes: SeenProcess[];
  readonly mounts: SeenMount[];
}

/** Every namespace that can be seen, with what keeps it. */
function holdersOf(snapshot: HostSnapshot): Map<string, Holders> {
  const holders = new Map<string, Holders>();
  const of = (namespace: string): Holders => {
    const present = holders.get(namespace) ?? { processes: [], mounts: [] };
    holders.set(namespace, present);
    return present;
  };
  for (const seen of snapshot.processes) {
    for (const namespace of [...seen.namespaces, ...seen.heldNamespaces]) of(namespace).processes.push(seen);
  }
  for (const mount of snapshot.mounts) {
    if (mount.type === "nsfs") of(mount.root).mounts.push(mount);
  }
  return holders;
}

function processKey(seen: SeenProcess): string {
  return `${seen.pid} ${seen.startTime}`;
}

function mountKey(mount: SeenMount): string {
  return [mount.namespace, mount.mountPoint, mount.type, mount.source, mount.root, mount.options].join("\n");
}

/** What `after` has more of than `before`, counting repetitions: the same mount twice at one place is one leak. */
function added<Item>(
  before: readonly Item[],
  after: readonly Item[],
  key: (item: Item) => string,
): readonly Item[] {
  const counts = new Map<string, number>();
  for (const item of before) counts.set(key(item), (counts.get(key(item)) ?? 0) + 1);
  return after.filter((item) => {
    const left = counts.get(key(item)) ?? 0;
    if (left === 0) return true;
    counts.set(key(item), left - 1);
    return false;
  });
}
