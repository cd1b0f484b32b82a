// Root inside a sandbox is nobody outside: what it may not do, it cannot.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";
import { shell, tryCalls } from "./probe.ts";

const skip = reasonToSkip();
let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  if (skip !== false) return;
  platform = await startPlatform();
  sandbox = await platform.client.sandboxes.create({ memoryMib: 512 });
});
after(async () => {
  await sandbox?.stop();
  await platform?.[Symbol.asyncDispose]();
});

const refused = new Set(["EPERM", "ENOSYS", "EACCES"]);
const cloneNewNs = 0x0002_0000;
const cloneNewUser = 0x1000_0000;
const cloneNewNet = 0x4000_0000;
const bindMount = 0x1000;

const forbidden = {
  mountTmpfs: [165, "none", "/mnt", "tmpfs", 0, ""],
  mountBind: [165, "/tmp", "/mnt", "", bindMount, 0],
  remountRoot: [165, "none", "/", "", 0x20, 0],
  unmountProc: [166, "/proc", 2],
  pivotRoot: [155, "/tmp", "/tmp"],
  openTree: [428, -100, "/", 1],
  openFileSystem: [430, "tmpfs", 0],
  newMountNamespace: [272, cloneNewNs],
  newUserNamespace: [272, cloneNewUser],
  newNetworkNamespace: [272, cloneNewNet],
  makeDevice: [133, "/tmp/disk", 0o60600, 0x0800],
  setHostName: [170, "other", 5],
  setDomainName: [171, "other", 5],
  reboot: [169, 0xfee1_dead, 672_274_793, 0, 0],
  swapOn: [167, "/tmp/none", 0],
  setClock: [227, 0, 0],
  loadModule: [175, "", 0, ""],
  loadKernel: [246, 0, 0, 0, 0],
  kernelLog: [103, 3, "                ", 16],
  bpf: [321, 0, 0, 0],
  performanceEvents: [298, 0, 0, -1, -1, 0],
  addKey: [248, "user", "name", "x", 1, -3],
  keyControl: [250, 0, -3, 1],
  openByHandle: [304, -100, 0, 0],
  userFaults: [323, 0],
  ring: [425, 8, 0],
  fileNotify: [300, 0, 0],
  portAccess: [172, 3],
  attachToInit: [101, 16, 1, 0, 0],
  killInit: [62, 1, 9],
  stopInit: [62, 1, 19],
} as const;

test("root inside is refused every call that reaches beyond the sandbox", { skip }, async () => {
  const answers = await tryCalls(sandbox, forbidden);
  const wrong = Object.entries(answers).filter(([, answer]) => !refused.has(answer));
  assert.deepEqual(wrong, []);
  assert.equal((await sandbox.refresh()).state, "running");
});

test("nothing of the processes that are not the sandbox's own can be read", { skip }, async () => {
  const found = await shell(
    sandbox,
    [
      "for process in /proc/[0-9]*; do",
      "  [ $(stat -c %u $process) = 65534 ] || [ $process = /proc/1 ] || continue",
      "  for name in root cwd exe fd/0 ns/mnt; do readlink $process/$name && echo $process/$name; done",
      // What may not be read can still be opened: it is empty then.
      "  for name in mem environ maps auxv; do head -c 1 $process/$name | grep -qa . && echo $process/$name; done",
      "  ls $process/root/ $process/fd/ && echo $process",
      "done 2>/dev/null",
      "true",
    ].join("\n"),
  );
  assert.equal(found, "");
});

test("kernel settings and devices that act on the host cannot be written", { skip }, async () => {
  const targets = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/1/oom_score_adj",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
  ];
  const text = `for path in ${targets.join(" ")}; do (echo x >$path) 2>/dev/null && echo $path; done; true`;
  assert.equal(await shell(sandbox, text), "");
  const devices = "find /dev -type b -o -type c \\( -name mem -o -name kmsg -o -name fuse -o -name kvm \\)";
  assert.equal(await shell(sandbox, devices), "");
});

test("no file, socket, descriptor, variable or mount of the platform is visible inside", {
  skip,
}, async () => {
  const { runDir, dataDir } = platform.places;
  const seen = await shell(
    sandbox,
    [
      "cat /proc/self/mountinfo /proc/net/unix /proc/self/environ /proc/self/cgroup | tr '\\0' '\\n'",
      "find / -xdev \\( -iname '*chronus*' -o -iname '*dsec*' -o -type s \\) 2>/dev/null",
      "ls -l /proc/self/fd",
      "ps -eo args",
    ].join("; "),
  );
  for (const word of [runDir, dataDir, "/var/lib/dsec", "/layers/", "DSEC_", "spawner", platform.key]) {
    assert.ok(!seen.includes(word), `${word} is visible:\n${seen}`);
  }
});

test("there is no network but loopback", { skip }, async () => {
  assert.equal(await shell(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"), "lo\n");
  const text = [
    "import socket, sys",
    "for address in sys.argv[2:]:",
    "    one = socket.socket()",
    "    one.settimeout(1)",
    "    if one.connect_ex((address, int(sys.argv[1]))) == 0: print(address)",
  ].join("\n");
  const addresses = ["127.0.0.1", "169.254.169.254", "10.0.0.1", "1.1.1.1"];
  const { port } = new URL(platform.url);
  const { stdout, stderr } = await sandbox.exec(["python3", "-c", text, port, ...addresses]);
  assert.deepEqual([stdout, stderr], ["", ""]);
});
