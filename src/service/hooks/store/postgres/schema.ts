import { LatentkitError } from "../../../../base/errors.js";
import type { PoolClient, QueryConfig } from "./driver.js";

/** Oldest server that is supported: 15. */
const OLDEST_SERVER = 150_000;
const MIGRATION_MS = 60_000;
/** Classes of advisory locks, from "lkit"; the schema's name makes the second key. */
const MIGRATION_LOCKS = 0x6c6b6974;
export const SWEEP_LOCKS = MIGRATION_LOCKS + 1;

/** One migration per schema version; a released one never changes. `lk.` becomes the schema. */
const STEPS = [
  `
  CREATE TABLE lk.sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL UNIQUE,
    runs bigint NOT NULL DEFAULT 0,          -- how many are stored
    wakes bigint NOT NULL DEFAULT 0,         -- how many are pending, and their bytes
    wake_bytes bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 70);
  CREATE TABLE lk.runs (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    session bigint NOT NULL REFERENCES lk.sessions,
    origin text NOT NULL,
    name text,
    state text NOT NULL,
    timeout_seconds double precision NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    ended_mark bigint,                       -- steady ms; set exactly in terminal states
    oldest_event bigint NOT NULL DEFAULT 1,
    last_event bigint NOT NULL DEFAULT 0,
    event_bytes bigint NOT NULL DEFAULT 0,
    files bigint NOT NULL DEFAULT 0,         -- how many
    progress text,                           -- JSON text
    error text,
    error_code text,
    priority integer NOT NULL DEFAULT 0,     -- higher ones first
    active boolean NOT NULL DEFAULT false,   -- the oldest unfinished run of its session: workers claim these
    token bigint NOT NULL DEFAULT 0,         -- number of starts
    losses integer NOT NULL DEFAULT 0,       -- number of workers that were lost with it
    worker text,
    lease_until timestamptz
  ) WITH (fillfactor = 70);
  CREATE INDEX runs_waiting ON lk.runs (session, seq) WHERE state = 'queued';
  CREATE INDEX runs_live ON lk.runs (seq) WHERE ended_mark IS NULL;
  CREATE INDEX runs_leased ON lk.runs (worker) WHERE state = 'running';
  CREATE INDEX runs_ended ON lk.runs (ended_mark, seq) WHERE ended_mark IS NOT NULL;
  CREATE INDEX runs_state ON lk.runs (state, seq);
  CREATE UNIQUE INDEX runs_session ON lk.runs (session, seq);
  CREATE UNIQUE INDEX runs_active ON lk.runs (session) WHERE active;
  CREATE INDEX runs_claim ON lk.runs (priority DESC, seq) WHERE active AND state = 'queued';
  CREATE TABLE lk.messages (                 -- apart: a run's row is written anew with each of its events
    run bigint PRIMARY KEY,
    message text NOT NULL
  );
  CREATE TABLE lk.events (
    run bigint NOT NULL,
    id bigint NOT NULL,
    event text NOT NULL,
    data text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (run, id)
  );
  CREATE TABLE lk.files (
    run bigint NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    content_type text,
    place bigint NOT NULL,                   -- order of report
    PRIMARY KEY (run, name)
  );
  CREATE TABLE lk.wakes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL REFERENCES lk.sessions,
    text text NOT NULL,
    bytes bigint NOT NULL
  );
  CREATE UNIQUE INDEX wakes_session ON lk.wakes (session, id);
  CREATE TABLE lk.backlog (                  -- one row: the pending wakes of all sessions
    id integer PRIMARY KEY CHECK (id = 1),
    wakes bigint NOT NULL,
    bytes bigint NOT NULL
  );
  INSERT INTO lk.backlog VALUES (1, 0, 0);
  CREATE TABLE lk.replies (
    scope text PRIMARY KEY,
    payload_hash text NOT NULL,
    reply text NOT NULL,                     -- JSON text
    expires_mark bigint NOT NULL
  );
  CREATE INDEX replies_expiry ON lk.replies (expires_mark);
  CREATE TABLE lk.owner (                    -- one row: the process whose queue orders the runs
    id integer PRIMARY KEY CHECK (id = 1),
    process text NOT NULL,
    until timestamptz
  );
  INSERT INTO lk.owner VALUES (1, '', NULL);
  CREATE TABLE lk.pings (id integer PRIMARY KEY CHECK (id = 1), at timestamptz NOT NULL);
  INSERT INTO lk.pings VALUES (1, now());
  `,
  `
  CREATE TABLE lk.deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint text NOT NULL,
    target text NOT NULL,
    run_id text NOT NULL,                    -- outlives its run
    session_key text NOT NULL,
    run_state text NOT NULL,
    finished_at bigint NOT NULL,
    ended_mark bigint NOT NULL,
    state text NOT NULL,
    attempts text NOT NULL DEFAULT '[]',     -- JSON text
    token bigint NOT NULL DEFAULT 0,         -- number of claims
    due timestamptz NOT NULL,
    since timestamptz NOT NULL,
    settled timestamptz                      -- set exactly where the state is not pending
  ) WITH (fillfactor = 70);
  CREATE INDEX deliveries_due ON lk.deliveries (endpoint, due, id) WHERE state = 'pending';
  CREATE INDEX deliveries_since ON lk.deliveries (since) WHERE state = 'pending';
  CREATE INDEX deliveries_settled ON lk.deliveries (settled) WHERE settled IS NOT NULL;
  CREATE INDEX deliveries_run ON lk.deliveries (run_id);
  CREATE TABLE lk.gone (
    endpoint text NOT NULL,
    target text NOT NULL,
    PRIMARY KEY (endpoint, target)
  );
  `,
  `
  CREATE TABLE lk.graphs (                   -- each text once
    hash text PRIMARY KEY,
    text text NOT NULL
  );
  ALTER TABLE lk.messages ADD COLUMN graph text, ADD COLUMN graph_name text, ADD COLUMN traceparent text;
  CREATE INDEX messages_graph ON lk.messages (graph) WHERE graph IS NOT NULL;
  `,
  `
  ALTER TABLE lk.runs
    ADD COLUMN due_mark bigint,                        -- steady ms, as the next one
    ADD COLUMN deadline_mark bigint,
    ADD COLUMN delayed boolean NOT NULL DEFAULT false, -- due_mark is not known to be past
    ADD COLUMN attempts integer NOT NULL DEFAULT 0,    -- how many failed
    ADD COLUMN tags text;                              -- JSON text; null: none
  DROP INDEX lk.runs_claim;
  CREATE INDEX runs_claim ON lk.runs (priority DESC, seq) WHERE active AND state = 'queued' AND NOT delayed;
  CREATE INDEX runs_delayed ON lk.runs (due_mark) WHERE delayed AND state = 'queued';
  CREATE INDEX runs_deadline ON lk.runs (deadline_mark) WHERE deadline_mark IS NOT NULL AND state = 'queued';
  CREATE INDEX runs_unstarted ON lk.runs (greatest(created_at, due_mark)) WHERE state = 'queued' AND token = 0;
  CREATE TABLE lk.tags (
    tag text NOT NULL,
    run bigint NOT NULL,
    PRIMARY KEY (tag, run)
  );
  CREATE INDEX tags_run ON lk.tags (run);
  `,
  `
  CREATE TABLE lk.queue (                    -- one row
    id integer PRIMARY KEY CHECK (id = 1),
    paused boolean NOT NULL                  -- no run starts
  );
  INSERT INTO lk.queue VALUES (1, false);
  `,
  `
  CREATE TABLE lk.run_groups (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    size integer NOT NULL,
    ended integer NOT NULL DEFAULT 0
  ) WITH (fillfactor = 70);
  CREATE TABLE lk.group_runs (
    run bigint PRIMARY KEY,
    run_group bigint NOT NULL,
    item integer NOT NULL,                   -- order of the request
    position integer                         -- order of ends; set exactly where the run has ended
  );
  CREATE INDEX group_runs_ends ON lk.group_runs (run_group, position);
  `,
];

/**
 * Migrates a new or older schema to the newest one, in one transaction; processes that start together take turns. Throws
 * config.invalid for a server that is too old, and for a schema of a newer version or of another program. `to` names an
 * older version, for tests.
 */
export async function migrate(client: PoolClient, schema: string, to = STEPS.length): Promise<void> {
  // a migration may wait for another one, and may rewrite tables
  const query: Query = (text, values = []) => {
    // an option of `pg` that its types lack
    const config: QueryConfig & { query_timeout: number } = { text, values, query_timeout: MIGRATION_MS };
    return client.query(config);
  };
  const server = Number((await query("SHOW server_version_num")).rows[0]?.server_version_num);
  if (server < OLDEST_SERVER) {
    const received = `${Math.floor(server / 10_000)}`;
    throw new LatentkitError(
      "config.invalid",
      `The PostgreSQL store needs PostgreSQL 15 or newer, received ${received}.`,
    );
  }
  await query("BEGIN");
  try {
    await query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [MIGRATION_LOCKS, schema]);
    const version = await versionOf(query, schema);
    if (version > STEPS.length) {
      throw refusal(
        schema,
        `has version ${version}, but this latentkit reads versions up to ${STEPS.length}: update latentkit.`,
      );
    }
    if (version === 0) {
      await query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
      await query(`CREATE TABLE ${schema}.latentkit_version (version integer NOT NULL)`);
      await query(`INSERT INTO ${schema}.latentkit_version VALUES (0)`);
    }
    for (const step of STEPS.slice(version, to)) await query(step.replaceAll("lk.", `${schema}.`));
    if (version < to) await query(`UPDATE ${schema}.latentkit_version SET version = $1`, [to]);
    await query("COMMIT");
  } catch (error) {
    await query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

type Query = (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>;

/** Returns 0 for a schema that is absent or empty. */
async function versionOf(query: Query, schema: string): Promise<number> {
  const { rows } = await query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
  if (rows.length === 0) return 0;
  if (!rows.some(({ tablename }) => tablename === "latentkit_version")) {
    throw refusal(schema, "holds tables of another program: name another schema.");
  }
  return Number((await query(`SELECT version FROM ${schema}.latentkit_version`)).rows[0]?.version);
}

const refusal = (schema: string, why: string) =>
  new LatentkitError("config.invalid", `The schema ${schema} of the PostgreSQL store ${why}`);
