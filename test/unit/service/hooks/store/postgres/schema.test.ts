import assert from "node:assert/strict";
import { createPool } from "#src/service/hooks/store/postgres/driver.js";
import { createPostgresStore, type PostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { createTables } from "#src/service/hooks/store/sqlite/connection.js";
import { loadSqliteDriver } from "#src/service/hooks/store/sqlite/driver.js";
import { refuses } from "../../../../../helpers/errors.js";
import { refusesHook } from "../../../../../helpers/hooks/hook-runs.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";

describe("schema of a PostgreSQL store", () => {
  const url = postgres();
  const open: PostgresStore[] = [];
  const create = (schema: string): PostgresStore => {
    const store = createPostgresStore({ url, schema, connections: 4 });
    open.push(store);
    return store;
  };
  const sql = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
    const pool = createPool({ connectionString: url });
    try {
      return (await pool.query(text, values)).rows as Record<string, unknown>[];
    } finally {
      await pool.end();
    }
  };
  afterEach(async () => {
    for (const store of open.splice(0).reverse()) await store.close();
  });

  it("is created once, however many processes start together", async () => {
    const schema = newSchema();
    const stores = Array.from({ length: 6 }, () => create(schema));
    await Promise.all(stores.map((store) => store.open()));
    await stores[0]!.createRun(newRun("r1"));
    await create(schema).open();
    assert.equal((await stores[1]!.getRun("r1"))?.seq, 1);
    assert.equal((await sql(`SELECT version FROM ${schema}.latentkit_version`)).length, 1);
  });

  it("of another version is refused", async () => {
    const schema = newSchema();
    await create(schema).open();
    for (const version of [0, 99]) {
      await sql(`UPDATE ${schema}.latentkit_version SET version = ${version}`);
      const sentence = `schema ${schema} of the PostgreSQL store has version ${version}, but this latentkit expects version 1: `;
      await refuses(create(schema).open(), "config.invalid", new RegExp(`${sentence}name another schema`));
      await refusesHook(create(schema).getRun("r1"), "store_unavailable");
    }
  });

  it("of another program is refused", async () => {
    const schema = newSchema();
    await sql(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.people (id int)`);
    await refuses(create(schema).open(), "config.invalid", /holds tables of another program/);
  });

  it("names tables and columns as SQLite's does", async () => {
    const schema = newSchema();
    await create(schema).open();
    const columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = $1";
    const here = (await sql(columns, [schema])).map((row) => `${row.table_name}.${row.column_name}`);
    const database = loadSqliteDriver().open(":memory:");
    createTables(database);
    const there = database
      .prepare(
        `SELECT tables.name || '.' || columns.name AS name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
         WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'`,
      )
      .all()
      .map(({ name }) => String(name));
    database.close();
    const without = (names: string[], others: string[]) => names.filter((name) => !others.includes(name)).sort();
    assert.deepEqual(without(there, here), ["pings.filler"]);
    // for processes that share the schema
    const shared = ["active", "delayed", "lease_until", "losses", "token", "worker"].map((column) => `runs.${column}`);
    const alone = ["latentkit_version.version", "pings.at", "queue.per_session", "sessions.runs"];
    assert.deepEqual(without(here, there), [...shared, ...alone].sort());
  });
});
