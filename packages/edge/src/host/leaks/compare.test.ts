import assert from "node:assert/strict";
import { test } from "node:test";
import { compareSnapshots, type LeakScope } from "./compare.ts";
import { parseMountInfo } from "./mounts.ts";
import type { HostSnapshot, SeenProcess } from "./snapshot.ts";
import { parseTcp, parseUnix } from "./sockets.ts";

const scope: LeakScope = { directories: ["/run/x"], nodeIds: ["abcd"], aloneOnHost: false, ignore: [] };

const empty: HostSnapshot = {
  formatVersion: 1,
  takenAtMs: 0,
  observers: [],
  hostMountNamespace: "mnt:[1]",
  hostNetworkNamespace: "net:[1]",
  processes: [],
  mounts: [],
  cgroups: [],
  networkDevices: [],
  blockDevices: [],
  sockets: [],
  files: [],
  filesTruncated: false,
};

function seen(pid: number, parts: Partial<SeenProcess> = {}): SeenProcess {
  return {
    pid,
    startTime: pid * 10,
    parent: 1,
    name: "sleep",
    executable: "/usr/bin/sleep",
    commandLine: "sleep 1",
    directory: "/",
    cgroups: [],
    namespaces: ["mnt:[1]", "net:[1]"],
    heldNamespaces: [],
    socketInodes: [],
    ...parts,
  };
}

const compare = (after: Partial<HostSnapshot>, before: Partial<HostSnapshot> = {}, changed = scope) =>
  compareSnapshots({ ...empty, ...before }, { ...empty, ...after }, changed);

test("compareSnapshots() finds the children of a leaked process, in whatever order they were read", () => {
  const processes = [seen(9, { parent: 8 }), seen(8, { parent: 7 }), seen(7, { directory: "/run/x/sb" })];
  const found = compare({ processes }).filter((leak) => leak.kind === "process");
  assert.deepEqual(found.map((leak) => leak.evidence).toSorted(), [
    "its working directory",
    "started by process 7",
    "started by process 8",
  ]);
});

test("compareSnapshots() knows a process by pid and start time, and never takes the observer for a leak", () => {
  const ours = { directory: "/run/x" };
  const before = { processes: [seen(7, ours), seen(8, { ...ours, startTime: 1 })] };
  const processes = [seen(7, ours), seen(8, { ...ours, startTime: 2 }), seen(9, ours)];
  const found = compare({ processes, observers: [9] }, before);
  assert.deepEqual(
    found.map((leak) => leak.what),
    ["process 8 sleep: sleep 1"],
  );
});

test("compareSnapshots() takes a path for the platform's only at a border of names", () => {
  assert.deepEqual(compare({ processes: [seen(7, { directory: "/run/xy" })] }), []);
});

test("compareSnapshots() leaves groups of other nodes alone, unless asked about all", () => {
  const cgroups = ["/sys/fs/cgroup/dsec/abcd", "/sys/fs/cgroup/dsec/wxyz", "/sys/fs/cgroup/other"];
  assert.equal(compare({ cgroups }).length, 1);
  assert.equal(compare({ cgroups }, {}, { ...scope, nodeIds: null }).length, 2);
  assert.equal(compare({ cgroups }, { cgroups }).length, 0);
});

test("compareSnapshots() counts a second mount at the same place", () => {
  const mount = {
    namespace: "mnt:[1]",
    mountPoint: "/run/x/ns",
    type: "tmpfs",
    source: "t",
    root: "/",
    options: "rw",
  };
  assert.equal(compare({ mounts: [mount, mount] }, { mounts: [mount] }).length, 1);
});

test("compareSnapshots() takes ownerless news for leaks only where the platform is alone on the host", () => {
  const mount = {
    namespace: "mnt:[1]",
    mountPoint: "/mnt",
    type: "tmpfs",
    source: "t",
    root: "/",
    options: "",
  };
  const pin = { ...mount, mountPoint: "/mnt/net", type: "nsfs", root: "net:[77]" };
  const before = { processes: [seen(1)] };
  const after = {
    processes: [seen(1)],
    mounts: [mount, pin],
    networkDevices: [{ namespace: "net:[1]", name: "veth3" }],
    blockDevices: [{ name: "zram1", inUse: false, backing: null }],
  };
  assert.deepEqual(compare(after, before), []);
  const found = compare(after, before, { ...scope, aloneOnHost: true });
  assert.deepEqual(
    found.map((leak) => leak.kind),
    ["mount", "mount", "namespace", "network_device", "block_device"],
  );
});

test("compareSnapshots() leaves out what it is told to ignore", () => {
  const files = ["/run/x/layers/a", "/run/x/left"];
  const ignore = [/^file \/run\/x\/layers\//];
  assert.deepEqual(
    compare({ files }, {}, { ...scope, ignore }).map((leak) => leak.what),
    ["file /run/x/left"],
  );
});

test("parseMountInfo() reads optional fields and escaped names", () => {
  const line =
    "36 35 98:0 /sub /mnt/with\\040space rw,noatime master:1 shared:2 - ext4 /dev/root rw,errors=continue";
  assert.deepEqual(parseMountInfo(line), {
    mountPoint: "/mnt/with space",
    type: "ext4",
    source: "/dev/root",
    root: "/sub",
    options: "rw,errors=continue",
  });
  assert.equal(parseMountInfo(""), undefined);
});

test("parseUnix() and parseTcp() take named and listening sockets only", () => {
  assert.deepEqual(parseUnix("0000000000000000: 00000002 00000000 00010000 0001 01 48213 /run/x/a b.sock"), {
    kind: "unix",
    address: "/run/x/a b.sock",
    inode: 48_213,
  });
  assert.equal(parseUnix("0000000000000000: 00000003 00000000 00000000 0001 03 48214"), undefined);
  const row = (state: string) =>
    `   0: 0100007F:1F90 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 511 1 0 100`;
  assert.deepEqual(parseTcp("tcp", row("0A")), { kind: "tcp", address: "0100007F:1F90", inode: 511 });
  assert.equal(parseTcp("tcp", row("01")), undefined);
});
