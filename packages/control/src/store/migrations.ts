import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Every change of the tables, by name in order. A landed one is never edited. */
export const migrations: Record<string, Migration> = {
  "001-first": {
    async up(database: Kysely<unknown>): Promise<void> {
      await database.schema
        .createTable("setting")
        .addColumn("name", "text", (column) => column.primaryKey())
        .addColumn("value", "text", (column) => column.notNull())
        .execute();
      await database.schema
        .createTable("project")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("name", "text", (column) => column.notNull().unique())
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .execute();
      await database.schema
        .createTable("api_key")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("project_id", "text", (column) => column.notNull().references("project.id"))
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("role", "text", (column) => column.notNull())
        .addColumn("secret_sha256", "text", (column) => column.notNull())
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .addColumn("revoked_at_ms", "bigint")
        .execute();
      await database.schema
        .createTable("join_token")
        .addColumn("secret_sha256", "text", (column) => column.primaryKey())
        .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
        .execute();
      await database.schema
        .createTable("node")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("hostname", "text", (column) => column.notNull())
        .addColumn("url", "text", (column) => column.notNull())
        .addColumn("joined_at_ms", "bigint", (column) => column.notNull())
        .execute();
      await database.schema
        .createTable("control_instance")
        .addColumn("url", "text", (column) => column.primaryKey())
        .addColumn("seen_at_ms", "bigint", (column) => column.notNull())
        .execute();
    },
  },
};
