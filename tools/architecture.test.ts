// Imports go only where the tables of architecture-rules.ts let them, and never in a circle.
import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { areaTables, packageTable } from "./architecture-rules.ts";
import { readSources, type Sources } from "./repository.ts";

interface Import {
  readonly from: string;
  /** Path of the file, or the specifier as written when it names a package. */
  readonly to: string;
  readonly typeOnly: boolean;
}

const importPattern =
  /^(?:import|export)\s+(type\s)?(?:[^;"']*?\sfrom\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/gm;

function importsOf(path: string, text: string): Import[] {
  return [...text.matchAll(importPattern)].map(([, type, from, dynamic]) => {
    const target = from ?? dynamic ?? "";
    const to = target.startsWith(".") ? posix.join(posix.dirname(path), target) : target;
    return { from: path, to, typeOnly: type !== undefined };
  });
}

/** "edge" for packages/edge/… and for "@dsec/edge/…"; "tests/host" and the like by their longest entry; else undefined. */
function packageOf(pathOrSpecifier: string): string | undefined {
  const scoped = /^(?:packages\/|@dsec\/)([^/]+)/.exec(pathOrSpecifier)?.[1];
  if (scoped !== undefined) return scoped;
  if (pathOrSpecifier.startsWith("tests/host/")) return "tests/host";
  return /^(tests|bench|tools)\//.exec(pathOrSpecifier)?.[1];
}

const isTest = (path: string): boolean => path.endsWith(".test.ts");

/** "host/files" for packages/edge/src/host/files.ts, "main" for packages/edge/src/main.ts. */
function areaOf(path: string): string | undefined {
  return /^packages\/[^/]+\/src\/(.+)\.ts$/.exec(path)?.[1];
}

const outermost = (area: string): string => area.split("/", 1)[0] ?? "";

function mayImport(allowed: readonly string[] | "*", target: string): boolean {
  if (allowed === "*") return true;
  return allowed.some((name) => target === name || target.startsWith(`${name}/`));
}

function checkPackages({ from, to }: Import): string | undefined {
  const source = packageOf(from);
  const target = packageOf(to);
  if (source === undefined || target === undefined || source === target) return undefined;
  if (source === "tests/host" && target === "tests") return undefined;
  const allowed = packageTable[source];
  if (allowed === undefined) return `${from}: package "${source}" is not in the table`;
  if (to.startsWith("packages/")) return `${from}: enter ${to} by its package's exports`;
  return mayImport(allowed, target) ? undefined : `${from}: ${source} may not import ${target}`;
}

function checkAreas({ from, to, typeOnly }: Import): string | undefined {
  const owner = packageOf(from);
  const table = areaTables[owner ?? ""];
  const [source, target] = [areaOf(from), areaOf(to)];
  if (table === undefined || source === undefined || target === undefined) return undefined;
  if (isTest(from) || packageOf(to) !== owner) return undefined;
  const [area, targetArea] = [outermost(source), outermost(target)];
  const allowed = table[area];
  if (allowed === undefined) return `${from}: area "${area}" of ${owner} is not in the table`;
  // An interface of the host may be named anywhere inside edge; its classes only where the table says.
  const isFree = area === targetArea || targetArea === "config" || (targetArea === "host" && typeOnly);
  if (isFree || mayImport(allowed, target)) return undefined;
  return `${from}: ${owner}/${area} may not import ${owner}/${target}`;
}

/** Circles of value imports between files, each once, as "a → b → a". */
function findCycles(imports: readonly Import[]): string[] {
  const targets = new Map<string, string[]>();
  for (const { from, to, typeOnly } of imports) {
    if (!typeOnly) targets.set(from, [...(targets.get(from) ?? []), to]);
  }
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) cycles.push([...trail.slice(start), path].join(" → "));
    if (start >= 0 || done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return cycles;
}

/** Every arrow that the tables forbid, and every circle. */
function checkArchitecture(sources: Sources): string[] {
  assert.ok(sources.size > 0, "no file was looked at");
  const imports = [...sources].flatMap(([path, text]) => importsOf(path, text));
  const arrows = imports.flatMap((found) => [checkPackages(found), checkAreas(found)]);
  return [...arrows.filter((problem) => problem !== undefined), ...findCycles(imports)];
}

test("the repository's imports follow the tables", () => {
  assert.deepEqual(
    checkArchitecture(
      readSources(/^(?!tools\/architecture\.test)(?:packages|tests|bench|tools)\/.*\.(?:ts|mjs)$/),
    ),
    [],
  );
});

test("checkArchitecture() fails when it saw nothing", () => {
  assert.throws(() => checkArchitecture(new Map()), /no file was looked at/);
});

const at = (path: string, text: string): Sources => new Map([[path, text]]);

for (const [path, text, expected] of [
  ["packages/sdk/src/client.ts", 'import { a } from "@dsec/edge";', /sdk may not import edge/],
  [
    "packages/control/src/nodes/client.ts",
    'import type { A } from "@dsec/edge";',
    /control may not import edge/,
  ],
  ["packages/cli/src/up.ts", 'import { a } from "../../edge/src/main.ts";', /by its package's exports/],
  ["tests/e2e/create.test.ts", 'import { a } from "@dsec/edge/host";', /tests may not import edge/],
  [
    "packages/control/src/api/jobs.ts",
    'import { a } from "../store/jobs.ts";',
    /control\/api may not import control\/store/,
  ],
  [
    "packages/edge/src/sandbox/create.ts",
    'import { M } from "../host/mount.ts";',
    /edge\/sandbox may not import/,
  ],
  [
    "packages/edge/src/ledger/open.ts",
    'import {\n  run,\n} from "../host/process.ts";',
    /edge\/ledger may not import/,
  ],
  [
    "packages/edge/src/odd/x.ts",
    'import { a } from "../host/process.ts";',
    /area "odd" of edge is not in the table/,
  ],
  ["packages/new/src/x.ts", 'const a = await import("@dsec/kit");', /package "new" is not in the table/],
] as const) {
  test(`checkArchitecture() refuses ${text.replaceAll("\n", " ")} in ${path}`, () => {
    assert.match(checkArchitecture(at(path, text)).join(), expected);
  });
}

for (const [path, text] of [
  ["packages/edge/src/sandbox/create.ts", 'import type { Mounts } from "../host/mount.ts";'],
  ["packages/edge/src/ledger/open.ts", 'import { a } from "../host/files.ts";'],
  ["packages/edge/src/main.ts", 'import { M } from "./host/mount.ts";'],
  ["packages/edge/src/sandbox/create.test.ts", 'import { M } from "../host/fakes/mount.ts";'],
  ["tests/host/mount.test.ts", 'import { M } from "@dsec/edge/host";'],
  ["packages/cli/src/up.ts", 'import { start } from "@dsec/control";'],
] as const) {
  test(`checkArchitecture() allows ${text} in ${path}`, () => {
    assert.deepEqual(checkArchitecture(at(path, text)), []);
  });
}

test("checkArchitecture() finds a circle of values and none of types", () => {
  const circle = new Map([
    ["packages/kit/src/a.ts", 'import { b } from "./b.ts";'],
    ["packages/kit/src/b.ts", 'export * from "./c.ts";'],
    ["packages/kit/src/c.ts", 'import { a } from "./a.ts";'],
  ]);
  assert.deepEqual(checkArchitecture(circle), [
    "packages/kit/src/a.ts → packages/kit/src/b.ts → packages/kit/src/c.ts → packages/kit/src/a.ts",
  ]);
  assert.deepEqual(
    checkArchitecture(circle.set("packages/kit/src/c.ts", 'import type { A } from "./a.ts";')),
    [],
  );
});
