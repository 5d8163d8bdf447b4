import { LatentkitError } from "../../../../base/errors.js";
import { commonTables, GOES_IN_FRONT } from "../tables.js";
import type { PoolClient, QueryConfig } from "./driver.js";

/** Oldest server that is supported: 15. */
const OLDEST_SERVER = 150_000;
const OPEN_MS = 60_000;
/** Classes of advisory locks, from "lkit"; the schema's name makes the second key. */
const SCHEMA_LOCKS = 0x6c6b6974;
export const SWEEP_LOCKS = SCHEMA_LOCKS + 1;

// decisions: A store has one version of its tables
/** Version of the tables: every change of them counts it up, and a store of another version is refused. */
const VERSION = 1;

// Texts that a client or an agent chose are stored as `toStored` does (driver.ts); JSON needs no more. `lk.` becomes the schema.
const TABLES = `
  ${commonTables({
    schema: "lk.",
    serial: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    foreign: "bigint",
    keyed: "",
  })}
  ALTER TABLE lk.sessions SET (fillfactor = 70),
    ADD COLUMN runs bigint NOT NULL DEFAULT 0;           -- how many are stored
  ALTER TABLE lk.runs SET (fillfactor = 70),
    ADD FOREIGN KEY (session) REFERENCES lk.sessions,
    ADD COLUMN active boolean NOT NULL DEFAULT false,    -- among the oldest unfinished runs of its session: workers claim these
    ADD COLUMN delayed boolean NOT NULL DEFAULT false,   -- due_mark is not known to be past
    ADD COLUMN token bigint NOT NULL DEFAULT 0,          -- number of starts
    ADD COLUMN losses integer NOT NULL DEFAULT 0,        -- number of workers that were lost with it
    ADD COLUMN worker text,
    ADD COLUMN lease_until timestamptz;
  CREATE INDEX runs_state ON lk.runs (state, seq);
  CREATE UNIQUE INDEX runs_session ON lk.runs (session, seq);
  CREATE INDEX runs_waiting ON lk.runs (session, seq) WHERE state = 'queued';
  CREATE INDEX runs_front ON lk.runs (session, seq) WHERE ${GOES_IN_FRONT("runs")} AND state = 'queued';
  CREATE INDEX runs_live ON lk.runs (seq) WHERE ended_mark IS NULL;
  CREATE INDEX runs_active ON lk.runs (session) WHERE active;
  CREATE INDEX runs_claim ON lk.runs (priority DESC, seq) WHERE active AND state = 'queued' AND NOT delayed;
  CREATE INDEX runs_leased ON lk.runs (worker) WHERE state = 'running';
  CREATE INDEX runs_delayed ON lk.runs (due_mark) WHERE delayed AND state = 'queued';
  CREATE INDEX runs_deadline ON lk.runs (deadline_mark) WHERE deadline_mark IS NOT NULL AND state = 'queued';
  CREATE INDEX runs_unstarted ON lk.runs (greatest(created_at, due_mark)) WHERE state = 'queued' AND token = 0;
  ALTER TABLE lk.wakes ADD FOREIGN KEY (session) REFERENCES lk.sessions;
  CREATE UNIQUE INDEX wakes_session ON lk.wakes (session, id);
  ALTER TABLE lk.run_groups SET (fillfactor = 70);
  ALTER TABLE lk.deliveries SET (fillfactor = 70);
  CREATE INDEX deliveries_due ON lk.deliveries (endpoint, due_mark, id) WHERE state = 'pending';
  CREATE TABLE lk.queue (                      -- one row
    id integer PRIMARY KEY CHECK (id = 1),
    paused boolean NOT NULL,                   -- no run starts
    per_session integer NOT NULL               -- most runs of a session at the same time
  );
  INSERT INTO lk.queue VALUES (1, false, 1);
  CREATE TABLE lk.pings (id integer PRIMARY KEY CHECK (id = 1), at timestamptz NOT NULL);
  INSERT INTO lk.pings VALUES (1, now());
  CREATE TABLE lk.latentkit_version (version integer NOT NULL);
  INSERT INTO lk.latentkit_version VALUES (${VERSION});
`;

/**
 * Creates the tables of a schema that is absent or empty, in one transaction; processes that start together take turns.
 * Throws config.invalid for a server that is too old, and for a schema of another version or of another program.
 */
export async function openSchema(client: PoolClient, schema: string): Promise<void> {
  // it may wait for another process that creates them
  const query: Query = (text, values = []) => {
    // an option of `pg` that its types lack
    const config: QueryConfig & { query_timeout: number } = { text, values, query_timeout: OPEN_MS };
    return client.query(config);
  };
  const server = Number((await query("SHOW server_version_num")).rows[0]?.server_version_num);
  if (server < OLDEST_SERVER) {
    const sentence = `The PostgreSQL store needs PostgreSQL 15 or newer, received ${Math.floor(server / 10_000)}.`;
    throw new LatentkitError("config.invalid", sentence);
  }
  await query("BEGIN");
  try {
    await query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [SCHEMA_LOCKS, schema]);
    if (await isEmpty(query, schema)) {
      await query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      await query(TABLES.replaceAll("lk.", `${schema}.`));
    }
    await query("COMMIT");
  } catch (error) {
    await query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

type Query = (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>;

/** Returns whether a schema is absent or has no tables. Refuses another program's, and another version's store. */
async function isEmpty(query: Query, schema: string): Promise<boolean> {
  const { rows } = await query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
  if (rows.length === 0) return true;
  const refusal = (why: string) =>
    new LatentkitError("config.invalid", `The schema ${schema} of the PostgreSQL store ${why}`);
  if (!rows.some(({ tablename }) => tablename === "latentkit_version")) {
    throw refusal("holds tables of another program: name another schema.");
  }
  const version = Number((await query(`SELECT version FROM ${schema}.latentkit_version`)).rows[0]?.version);
  if (version === VERSION) return false;
  throw refusal(`has version ${version}, but this latentkit expects version ${VERSION}: name another schema.`);
}
