import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { checkHost, describeReport } from "./host-check.mjs";
import {
  findCgroups,
  isKernelNewEnough,
  judgeCapabilities,
  judgeCorePattern,
  judgeDistribution,
  judgeIdMap,
} from "./host-facts.mjs";

for (const [osRelease, kind] of [
  ['ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"', "ok"],
  ["ID=debian\nVERSION_ID=13", "warning"],
  ['ID=ubuntu\nVERSION_ID="24.04"', "warning"],
  ['ID=ubuntu\nVERSION_ID="22.04"', "failed"],
  ["ID=debian\nVERSION_ID=11", "failed"],
  ["ID=alpine\nVERSION_ID=3.20.1", "failed"],
  ["", "failed"],
] as const) {
  test(`judgeDistribution() says ${kind} to ${JSON.stringify(osRelease)}`, () => {
    assert.equal(judgeDistribution(osRelease).kind, kind);
  });
}

test("isKernelNewEnough() compares numbers, not text", () => {
  assert.deepEqual(["6.13.0", "6.18.44-x", "7.0-rc1", "6.9.1", "5.15.0", ""].map(isKernelNewEnough), [
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("judgeCapabilities() names what a container's root lacks", () => {
  assert.equal(judgeCapabilities("CapEff:\t000001ffffffffff\n").kind, "ok");
  assert.match(
    judgeCapabilities("CapEff:\t00000000a80425fb\n").found,
    /CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN/,
  );
});

test("judgeIdMap() refuses root of a user namespace", () => {
  assert.equal(judgeIdMap("         0          0 4294967295\n").kind, "ok");
  assert.equal(judgeIdMap("         0     100000      65536\n").kind, "failed");
});

test("judgeCorePattern() warns of a program that a crash inside would start on the host", () => {
  assert.equal(judgeCorePattern("core\n").kind, "ok");
  assert.equal(judgeCorePattern("|/usr/lib/systemd/systemd-coredump %P %u\n").kind, "warning");
});

test("findCgroups() takes v2, or v1 with an empty v2 beside it, and names what is missing", () => {
  const v1 = ["cpu,cpuacct", "memory", "pids"].map(
    (name) => `cgroup /sys/fs/cgroup/${name} cgroup rw,${name} 0 0`,
  );
  const v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0";
  assert.deepEqual(findCgroups(v2), { version: 2, directories: ["/sys/fs/cgroup"] });
  assert.deepEqual(findCgroups([...v1, "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0"].join("\n")), {
    version: 1,
    directories: ["cpu,cpuacct", "memory", "pids", "unified"].map((name) => `/sys/fs/cgroup/${name}`),
  });
  assert.deepEqual(findCgroups(v1.join("\n")), { missing: ["cgroup v2 hierarchy"] });
  assert.deepEqual(findCgroups([...v1.slice(0, 2), v2].join("\n")), { missing: ["controller pids"] });
});

test("checkHost() reports a check that throws as failed, with its remedy", () => {
  const check = {
    name: "broken",
    remedy: "Mend it.",
    run: () => {
      throw new Error("no such file");
    },
  };
  const [report] = checkHost({}, [check]);
  assert.ok(report);
  assert.equal(describeReport(report), "failed   broken: no such file. Mend it.");
});

test("checkHost() looks at this host without throwing", () => {
  assert.ok(checkHost().length >= 10);
});

test("npm start -- --help prints its options and installs nothing", () => {
  const output = execFileSync(process.execPath, [join(import.meta.dirname, "start.mjs"), "--help"], {
    encoding: "utf8",
    env: { PATH: "/nonexistent" },
  });
  assert.match(output, /--tasks DIR/);
});
