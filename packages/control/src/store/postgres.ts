import { PostgresDialect } from "kysely";
import { Pool, types } from "pg";

const connectionsMax = 8;
const connectTimeoutMs = 5_000;
const bigintType = 20;

/** PostgreSQL behind the same tables, for several control instances. Whole numbers come as numbers, as from SQLite. */
export function postgresDialect(url: string): PostgresDialect {
  const pool = new Pool({
    connectionString: url,
    max: connectionsMax,
    connectionTimeoutMillis: connectTimeoutMs,
    types: {
      getTypeParser: (id: number, format: "text" | "binary" = "text") =>
        id === bigintType ? Number : (types.getTypeParser(id, format) as (text: string) => unknown),
    },
  });
  // A connection that breaks while it rests is replaced at its next use; without a listener it would end the process.
  pool.on("error", () => undefined);
  return new PostgresDialect({ pool });
}
