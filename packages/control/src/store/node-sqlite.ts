import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { SqliteDatabase, SqliteStatement } from "kysely";

/** Node's own SQLite in the form that Kysely's dialect expects. WAL, full durability: this store is small and rarely written. */
export function openSqlite(path: string): SqliteDatabase {
  const database = new DatabaseSync(path);
  database.exec(
    "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma busy_timeout = 5000",
  );
  return {
    close: () => database.close(),
    prepare: (sql: string): SqliteStatement => {
      const statement = database.prepare(sql);
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
        run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
        iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
      };
    },
  };
}
