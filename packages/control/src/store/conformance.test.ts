// One suite over both stores: what control relies on must hold on SQLite and on PostgreSQL.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { newKeyId, newProjectId } from "@dsec/contracts";
import { findPostgres, PostgresServer } from "../testing/postgres-server.ts";
import { type Database, openDatabase } from "./database.ts";
import { countKeys, findKey, insertKey, listKeys, revokeKey, type StoredKey } from "./keys.ts";
import {
  announceInstance,
  insertJoinToken,
  insertNode,
  isJoinToken,
  listNodes,
  updateNode,
} from "./nodes.ts";
import { findProject, insertProject, listProjects } from "./projects.ts";
import { settingOr } from "./settings.ts";

const directory = mkdtempSync(join(tmpdir(), "dsec-store-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const programs = findPostgres();
const stores: readonly {
  readonly name: string;
  readonly skip: string | false;
  readonly start: () => Promise<{ readonly postgresUrl?: string } & Partial<AsyncDisposable>>;
}[] = [
  { name: "SQLite", skip: false, start: async () => ({}) },
  {
    name: "PostgreSQL",
    skip: programs === undefined ? "PostgreSQL is not installed" : false,
    start: async () => {
      const server = await PostgresServer.start(programs ?? "");
      return {
        postgresUrl: server.url,
        [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose](),
      };
    },
  },
];

for (const store of stores) {
  describe(`store on ${store.name}`, { skip: store.skip }, () => {
    let one: Database;
    /** A second instance on the same store. */
    let two: Database;
    const held = new AsyncDisposableStack();

    before(async () => {
      const server = await store.start();
      held.defer(async () => await server[Symbol.asyncDispose]?.());
      const at = { dataDir: join(directory, store.name), ...server };
      const open = async (): Promise<Database> =>
        held.adopt(await openDatabase(at), async (database) => await database.destroy());
      [one, two] =
        store.name === "SQLite" ? [await open(), await open()] : await Promise.all([open(), open()]);
    });
    after(async () => await held.disposeAsync());

    test("a setting is made once, also when two instances ask at once", async () => {
      let made = 0;
      const make = async (): Promise<string> => `value ${(made += 1)}`;
      const values = await Promise.all([
        settingOr(one, "s", make),
        settingOr(two, "s", make),
        settingOr(one, "s", make),
      ]);
      assert.equal(new Set(values).size, 1);
      assert.equal(await settingOr(two, "s", async () => "other"), values[0]);
    });

    const project = { id: newProjectId(), name: "first", createdAtMs: 1_800_000_000_001 };

    test("projects are found by id and name, and names are unique", async () => {
      assert.equal(await insertProject(one, project), true);
      assert.equal(await insertProject(two, { ...project, id: newProjectId() }), false);
      assert.deepEqual(await findProject(two, project.id), project);
      assert.deepEqual(await findProject(one, "first"), project);
      assert.equal(await findProject(one, "second"), undefined);
      assert.deepEqual(await listProjects(one), [project]);
    });

    test("keys are kept with their hash, revoked once, and need their project", async () => {
      const key: StoredKey = {
        id: newKeyId(),
        project: project.id,
        name: "k",
        role: "admin",
        secretSha256: "0".repeat(64),
        createdAtMs: 1_800_000_000_002,
        revokedAtMs: null,
      };
      await insertKey(one, key);
      assert.deepEqual(await findKey(two, key.id), key);
      assert.equal(await revokeKey(two, key.id, 5), true);
      assert.equal(await revokeKey(one, key.id, 9), true);
      assert.equal((await findKey(one, key.id))?.revokedAtMs, 5);
      assert.equal(await revokeKey(one, newKeyId(), 9), false);
      assert.equal(await findKey(one, newKeyId()), undefined);
      assert.equal(await countKeys(two), 1);
      assert.equal((await listKeys(two)).length, 1);
      await assert.rejects(insertKey(one, { ...key, id: newKeyId(), project: newProjectId() }));
    });

    test("a node id is taken once, also by two instances at once", async () => {
      const node = { id: "aaaa", hostname: "h", url: "https://h:1", joinedAtMs: 1_800_000_000_003 };
      const taken = await Promise.all([insertNode(one, node), insertNode(two, node)]);
      assert.equal(taken.filter(Boolean).length, 1);
      await updateNode(two, { id: "aaaa", hostname: "h2", url: "https://h2:1" });
      assert.deepEqual(await listNodes(one), [{ ...node, hostname: "h2", url: "https://h2:1" }]);
    });

    test("a join token holds until it expires", async () => {
      await insertJoinToken(one, "1".repeat(64), 1_000);
      assert.equal(await isJoinToken(two, "1".repeat(64), 999), true);
      assert.equal(await isJoinToken(two, "1".repeat(64), 1_000), false);
      assert.equal(await isJoinToken(two, "2".repeat(64), 0), false);
    });

    test("instances see each other until they were silent for long", async () => {
      assert.deepEqual(await announceInstance(one, "https://one", 1_000, 100), ["https://one"]);
      assert.deepEqual(await announceInstance(two, "https://two", 1_050, 100), [
        "https://one",
        "https://two",
      ]);
      assert.deepEqual(await announceInstance(two, "https://two", 1_101, 100), ["https://two"]);
    });
  });
}

test("the embedded store is for its owner's eyes alone", async () => {
  const dataDir = join(directory, "private");
  const database = await openDatabase({ dataDir });
  await insertProject(database, { id: newProjectId(), name: "x", createdAtMs: 1 });
  for (const [name, mode] of [
    ["", 0o700],
    ["control.sqlite", 0o600],
    ["control.sqlite-wal", 0o600],
  ] as const) {
    assert.equal(statSync(join(dataDir, name)).mode & 0o777, mode, name);
  }
  await database.destroy();
  const again = await openDatabase({ dataDir });
  assert.equal((await listProjects(again)).length, 1);
  await again.destroy();
});
