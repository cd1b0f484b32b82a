import type { Database } from "./database.ts";

/**
 * The setting `name`; the first instance that asks for it makes it. Several instances that start at once agree on one value.
 */
export async function settingOr(
  database: Database,
  name: string,
  make: () => Promise<string>,
): Promise<string> {
  const found = await read(database, name);
  if (found !== undefined) return found;
  const value = await make();
  await database
    .insertInto("setting")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  return (await read(database, name)) ?? value;
}

async function read(database: Database, name: string): Promise<string | undefined> {
  const row = await database
    .selectFrom("setting")
    .select("value")
    .where("name", "=", name)
    .executeTakeFirst();
  return row?.value;
}
