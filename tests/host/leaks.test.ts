// One leak of each kind is planted on the real kernel: the check finds it, with evidence, and nothing of it is left after the clean-up.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newNodeId } from "@dsec/contracts";
import { findCgroupMounts } from "@dsec/edge/cgroups";
import { compareSnapshots, type Leak, type LeakKind, type LeakScope } from "@dsec/edge/leaks";
import { settle, takeSnapshot } from "@dsec/edge/leaks/snapshot";

const skip = process.getuid?.() === 0 ? false : "needs root";

interface Place extends AsyncDisposable {
  readonly directory: string;
  readonly nodeId: string;
  /** What the clean-up undoes, last first. */
  readonly undo: AsyncDisposableStack;
}

interface Plant {
  readonly kind: LeakKind;
  readonly name: string;
  /** Found only where nothing else makes such things. */
  readonly aloneOnHost?: boolean;
  readonly skip?: string | false;
  /** Before the first snapshot. */
  readonly prepare?: (place: Place) => Promise<void> | void;
  /** Makes the leak and answers what must be in its text. */
  readonly plant: (place: Place) => Promise<string> | string;
}

function makePlace(): Place {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "dsec-leaks-")));
  const undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(directory, { recursive: true, force: true }));
  return {
    directory,
    nodeId: newNodeId(),
    undo,
    [Symbol.asyncDispose]: async () => {
      await undo.disposeAsync();
    },
  };
}

const run = (program: string, ...parameters: string[]): string =>
  execFileSync(program, parameters, { encoding: "utf8" }).trim();

/** A process that lives until the clean-up has seen it end; resolves once it runs. */
async function start(place: Place, argv: readonly [string, ...string[]], cwd: string): Promise<number> {
  const [program, ...parameters] = argv;
  const child = spawn(program, parameters, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  await once(child, "spawn");
  place.undo.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  assert.ok(child.pid);
  // A line of output says that all before it has been done; none comes from a process that failed.
  const ended = once(child, "exit").then(([code]) => assert.fail(`${program} ended with ${code}`));
  ended.catch(() => undefined); // Its end later on is the clean-up's.
  await Promise.race([once(child.stdout, "data"), ended]);
  return child.pid;
}

const idle = (before = "true"): [string, ...string[]] => ["sh", "-c", `${before}; echo; exec sleep 300`];

function plantCgroup(root: string, place: Place): string {
  const top = join(root, "dsec");
  const existed = existsSync(top);
  const group = join(top, place.nodeId);
  mkdirSync(group, { recursive: true });
  place.undo.defer(() => {
    rmdirSync(group);
    if (!existed && run("find", top, "-mindepth", "1", "-type", "d") === "") rmdirSync(top);
  });
  return group;
}

const mounts = skip === false ? findCgroupMounts() : undefined;
const firstV1 = [...(mounts?.v1.values() ?? [])][0];
const zramControl = "/sys/class/zram-control";
let otherNamespace = 0;

const plants: readonly Plant[] = [
  {
    kind: "process",
    name: "a process in a sandbox's group",
    plant: async (place) => {
      assert.ok(mounts);
      const pid = await start(place, idle(), "/");
      const group = plantCgroup(mounts.unified, place);
      writeFileSync(join(group, "cgroup.procs"), String(pid));
      // The group goes before the process ends, and cannot go with it inside.
      place.undo.defer(() => writeFileSync(join(mounts.unified, "cgroup.procs"), String(pid)));
      return `process ${pid} sleep`;
    },
  },
  {
    kind: "process",
    name: "a process that works in the run directory",
    plant: async (place) => `process ${await start(place, idle(), place.directory)} sleep`,
  },
  {
    kind: "mount",
    name: "a mount in the host's namespace",
    plant: (place) => {
      const point = join(place.directory, "mounted");
      mkdirSync(point);
      run("mount", "-t", "tmpfs", "leak", point);
      place.undo.defer(() => void run("umount", point));
      return `at ${point} in`;
    },
  },
  {
    kind: "mount",
    name: "a mount in another namespace",
    prepare: async (place) => {
      otherNamespace = await start(place, ["unshare", "--mount", ...idle()], "/");
    },
    plant: (place) => {
      const point = join(place.directory, "hidden");
      mkdirSync(point);
      run("nsenter", `--target=${otherNamespace}`, "--mount", "mount", "-t", "tmpfs", "leak", point);
      return `at ${point} in`;
    },
  },
  {
    kind: "cgroup",
    name: "a group on cgroup v1",
    skip: firstV1 === undefined && "no v1 hierarchy here",
    plant: (place) => plantCgroup(firstV1 ?? "", place),
  },
  {
    kind: "cgroup",
    name: "a group on cgroup v2",
    plant: (place) => plantCgroup(mounts?.unified ?? "", place),
  },
  {
    kind: "namespace",
    name: "a namespace that only a mount keeps",
    plant: (place) => {
      const pin = join(place.directory, "pin");
      writeFileSync(pin, "");
      const [name = ""] = run("unshare", `--net=${pin}`, "readlink", "/proc/self/ns/net").split("\n");
      place.undo.defer(() => void run("umount", pin));
      return `namespace ${name}`;
    },
  },
  {
    kind: "namespace",
    name: "a namespace that only an open file of a process keeps",
    plant: async (place) => {
      const rest = `readlink /proc/self/fd/9 > ${place.directory}/name; echo; exec sleep 300`;
      const script = `exec 9< /proc/self/ns/net; exec nsenter --net=/proc/${process.pid}/ns/net sh -c '${rest}'`;
      await start(place, ["unshare", "--net", "sh", "-c", script], place.directory);
      return `namespace ${readFileSync(join(place.directory, "name"), "utf8").trim()}`;
    },
  },
  {
    kind: "network_device",
    name: "a veth pair in the host's namespace",
    plant: (place) => {
      run("ip", "link", "add", `ds${place.nodeId}a`, "type", "veth", "peer", "name", `ds${place.nodeId}b`);
      place.undo.defer(() => void run("ip", "link", "delete", `ds${place.nodeId}a`));
      return `network device ds${place.nodeId}b in`;
    },
  },
  {
    kind: "block_device",
    name: "a loop device",
    skip: !existsSync("/dev/loop-control") && "no loop devices here",
    plant: (place) => {
      const file = join(place.directory, "disk");
      writeFileSync(file, Buffer.alloc(1024 * 1024));
      const device = run("losetup", "--find", "--show", file);
      place.undo.defer(() => void run("losetup", "--detach", device));
      return `of ${file}`;
    },
  },
  {
    kind: "block_device",
    name: "a zram device",
    aloneOnHost: true,
    skip: !existsSync(zramControl) && "no zram here",
    plant: (place) => {
      const number = readFileSync(join(zramControl, "hot_add"), "utf8").trim();
      place.undo.defer(() => writeFileSync(join(zramControl, "hot_remove"), number));
      return `block device zram${number}`;
    },
  },
  {
    kind: "socket",
    name: "a unix socket in the run directory",
    plant: async (place) => {
      const path = join(place.directory, "left.sock");
      const server = createServer().listen(path);
      await once(server, "listening");
      place.undo.defer(async () => {
        await new Promise<void>((resolve) => server.close(() => resolve()));
      });
      return `unix socket ${path}`;
    },
  },
  {
    kind: "socket",
    name: "a listening port of a platform's process",
    plant: async (place) => {
      const script = `require("node:net").createServer().listen(0, "127.0.0.1", () => console.log("listening"))`;
      await start(place, [process.execPath, "-e", script], place.directory);
      return "tcp socket 0100007F:";
    },
  },
  {
    kind: "file",
    name: "a file in the data directory",
    plant: (place) => {
      writeFileSync(join(place.directory, "left"), "");
      return `file ${join(place.directory, "left")}`;
    },
  },
];

for (const planted of plants) {
  test(`the leak check finds ${planted.name}, and nothing after the clean-up`, {
    skip: skip || planted.skip || false,
    timeout: 20_000,
  }, async () => {
    const place = makePlace();
    const scope: LeakScope = {
      directories: [place.directory],
      nodeIds: [place.nodeId],
      aloneOnHost: planted.aloneOnHost ?? false,
      ignore: [],
    };
    let before: ReturnType<typeof takeSnapshot>;
    let planting: string;
    try {
      await planted.prepare?.(place);
      before = takeSnapshot(scope.directories);
      planting = await planted.plant(place);
      const leaks = look();
      const found = leaks.filter((leak) => leak.kind === planted.kind && leak.what.includes(planting));
      assert.equal(found.length, 1, `wanted one ${planted.kind} "${planting}" in ${JSON.stringify(leaks)}`);
      assert.notEqual(found[0]?.evidence, "");
    } finally {
      await place[Symbol.asyncDispose]();
    }
    const left = await settle(
      () => look().filter((leak) => leak.what.includes(planting)),
      2_000,
      AbortSignal.timeout(10_000),
    );
    assert.deepEqual(left, []);

    function look(): Leak[] {
      return compareSnapshots(before, takeSnapshot(scope.directories), scope);
    }
  });
}

test("the leak check takes nothing for a leak that has no evidence, and survives JSON", {
  skip,
}, async () => {
  await using place = makePlace();
  const scope = { directories: [place.directory], nodeIds: [place.nodeId], aloneOnHost: false, ignore: [] };
  const before = takeSnapshot(scope.directories);
  await start(place, ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", ...idle()], "/");
  const after: typeof before = JSON.parse(JSON.stringify(takeSnapshot(scope.directories)));
  assert.ok(after.processes.length >= before.processes.length);
  assert.deepEqual(compareSnapshots(before, after, scope), []);
});
