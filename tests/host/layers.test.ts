// A tree becomes a layer, the kernel mounts the pair, and what is read from it is what was put in.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { defaultBaseName, ensureDefaultBase } from "@dsec/edge/default-base";
import { LayerStore } from "@dsec/edge/layer-store";
import { missingPrograms } from "./programs.ts";

const missing = missingPrograms(["mkfs.erofs", "python3", "unshare"], process.env["PATH"] ?? "");
const skip = process.getuid?.() !== 0 ? "needs root" : missing.length > 0 && `needs ${missing.join(", ")}`;
const signal = AbortSignal.timeout(600_000);

/** Lists a tree as the kernel shows it; with a layer, in a mount namespace of its own, without a loop device. */
const listing = `
import ctypes, hashlib, os, sys
directory, meta, data = sys.argv[1:4]
if meta:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(meta.encode(), directory.encode(), b"erofs", 1, ("device=" + data).encode()) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
for base, directories, files in os.walk(os.fsencode(directory)):
    for name in sorted(directories + files):
        path = os.path.join(base, name)
        s = os.lstat(path)
        kind = s.st_mode & 0o170000
        content = hashlib.sha256(open(path, "rb").read()).hexdigest() if kind == 0o100000 else os.readlink(path) if kind == 0o120000 else ""
        attributes = sorted((key, os.getxattr(path, key, follow_symlinks=False)) for key in os.listxattr(path, follow_symlinks=False))
        links = s.st_nlink if kind == 0o100000 else 0
        print(repr(os.path.relpath(path, os.fsencode(directory))), oct(s.st_mode), s.st_uid, s.st_gid, s.st_size if kind != 0o040000 else 0, links, s.st_mtime_ns, content, attributes)
`;

function list(directory: string, layer?: { readonly meta: string; readonly data: string }): string[] {
  const output = execFileSync(
    "unshare",
    ["--mount", "python3", "-c", listing, directory, layer?.meta ?? "", layer?.data ?? ""],
    { encoding: "utf8" },
  );
  return output.split("\n").toSorted();
}

async function scene() {
  const root = mkdtempSync(join(tmpdir(), "dsec-layers-"));
  const directory = join(root, "source");
  const mounted = join(root, "mounted");
  mkdirSync(directory);
  mkdirSync(mounted);
  const store = new LayerStore(join(root, "layers"));
  await store.open();
  return {
    root,
    directory,
    mounted,
    store,
    source: { kind: "workspace", name: "tree", directory, provenance: "a test" } as const,
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

function plantTree(directory: string): void {
  mkdirSync(join(directory, "deep/er/est"), { recursive: true });
  writeFileSync(join(directory, "deep/er/est/text"), "text\n");
  writeFileSync(join(directory, "empty"), "");
  writeFileSync(join(directory, "large"), Buffer.alloc(3_000_001, "0123456789abcdef!"));
  writeFileSync(join(directory, "sparse"), "x");
  truncateSync(join(directory, "sparse"), 10_000_000);
  writeFileSync(join(directory, "with space \u00e4\u{1f600}"), "name");
  writeFileSync(join(directory, "program"), "#!/bin/sh\n");
  chmodSync(join(directory, "program"), 0o4755);
  linkSync(join(directory, "program"), join(directory, "linked"));
  symlinkSync("../outside/nowhere", join(directory, "dangling"));
  chownSync(join(directory, "empty"), 1000, 65_534);
  utimesSync(join(directory, "empty"), 1_000_000_000, 1_000_000_000);
  execFileSync("mkfifo", [join(directory, "fifo")]);
}

test("a mounted layer has every file of its source, with owners, modes, times and links", {
  skip,
}, async () => {
  using here = await scene();
  plantTree(here.directory);
  const manifest = await here.store.importDirectory(here.source, () => undefined, signal);
  const wanted = list(here.directory);
  assert.ok(wanted.length > 10);
  assert.deepEqual(list(here.mounted, here.store.paths(manifest.id)), wanted);
});

for (const [what, make] of [
  ["a device node", (path: string) => execFileSync("mknod", [path, "c", "1", "3"])],
  [
    "an owner that no sandbox has",
    (path: string) => execFileSync("install", ["-o", "65536", "/dev/null", path]),
  ],
] as const) {
  test(`a tree with ${what} is refused, and nothing stays in the store`, { skip }, async () => {
    using here = await scene();
    make(join(here.directory, "bad"));
    await assert.rejects(
      here.store.importDirectory(here.source, () => undefined, signal),
      {
        code: "invalid_request",
      },
    );
    assert.deepEqual(await here.store.list(), []);
  });
}

const cachedStore = "/var/lib/dsec/layers";
const buildBase = process.env["DSEC_TEST_BASE"] === "1";
const baseSkip =
  skip ||
  (!buildBase && !existsSync(join(cachedStore, "names", defaultBaseName))
    ? "no default base in the store of this host; DSEC_TEST_BASE=1 builds one"
    : false);

test("the default base has the tools that tasks need, and a second build keeps it", {
  skip: baseSkip,
}, async () => {
  using here = await scene();
  const store = buildBase ? here.store : new LayerStore(cachedStore);
  const options = { store, buildRoot: join(here.root, "build") };
  const lines: string[] = [];
  const manifest = await ensureDefaultBase(options, (line) => lines.push(line), signal);
  assert.deepEqual(
    await ensureDefaultBase(options, (line) => lines.push(`again: ${line}`), signal),
    manifest,
  );
  assert.ok(!lines.some((line) => line.startsWith("again:")));
  const { meta, data } = store.paths(manifest.id);
  const inside = [
    'test "$(python3 -c "print(6*7)")" = 42',
    'test "$(node -p 6*7)" = 42',
    "gcc --version && g++ --version && make --version && git --version",
    'test -u /usr/bin/sudo && id agent && test -z "$(ls -A /var/lib/apt/lists)"',
    'test -z "$(cat /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/99* 2>&- || true)"',
  ].join(" && ");
  const mount = `
import ctypes, os, sys
libc = ctypes.CDLL(None)
assert libc.mount(sys.argv[2].encode(), sys.argv[1].encode(), b"erofs", 1, ("device=" + sys.argv[3]).encode()) == 0
devices = sys.argv[1] + "/dev"
assert os.listdir(devices) == []
assert libc.mount(b"/dev", devices.encode(), None, 4096, None) == 0
os.execvp("chroot", ["chroot", sys.argv[1], "/bin/bash", "-c", sys.argv[4]])`;
  execFileSync("unshare", ["--mount", "python3", "-c", mount, here.mounted, meta, data, inside], {
    env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8" },
  });
});
