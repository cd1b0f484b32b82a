import type { Project } from "@dsec/contracts";
import type { Database } from "./database.ts";

/** Inserts unless the name is taken; says whether it did. */
export async function insertProject(database: Database, project: Project): Promise<boolean> {
  const result = await database
    .insertInto("project")
    .values({ id: project.id, name: project.name, created_at_ms: project.createdAtMs })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export async function listProjects(database: Database): Promise<Project[]> {
  const rows = await database
    .selectFrom("project")
    .selectAll()
    .orderBy("created_at_ms")
    .orderBy("id")
    .execute();
  return rows.map((row) => ({ id: row.id, name: row.name, createdAtMs: row.created_at_ms }));
}

/** By id or by name. */
export async function findProject(database: Database, reference: string): Promise<Project | undefined> {
  const row = await database
    .selectFrom("project")
    .selectAll()
    .where((where) => where.or([where("id", "=", reference), where("name", "=", reference)]))
    .executeTakeFirst();
  return row === undefined ? undefined : { id: row.id, name: row.name, createdAtMs: row.created_at_ms };
}
