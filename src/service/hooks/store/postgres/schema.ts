import { LatentkitError } from "../../../../base/errors.js";
import type { PoolClient, QueryConfig } from "./driver.js";

/** Oldest server that is supported: 15. */
const OLDEST_SERVER = 150_000;
const OPEN_MS = 60_000;
/** Classes of advisory locks, from "lkit"; the schema's name makes the second key. */
const SCHEMA_LOCKS = 0x6c6b6974;
export const SWEEP_LOCKS = SCHEMA_LOCKS + 1;

// decision 368
/** Version of the tables: every change of them counts it up, and a store of another version is refused. */
const VERSION = 1;

// Texts that a client or an agent chose are stored as `toStored` does (driver.ts); JSON needs no more. A mark is steady ms (clock.ts),
// and in deliveries ms of the server (delivery-rows.ts). `lk.` becomes the schema.
const TABLES = `
  CREATE TABLE lk.sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL UNIQUE,
    runs bigint NOT NULL DEFAULT 0,            -- how many are stored
    wakes bigint NOT NULL DEFAULT 0,           -- how many are pending, and their bytes
    wake_bytes bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 70);
  CREATE TABLE lk.runs (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    session bigint NOT NULL REFERENCES lk.sessions,
    origin text NOT NULL,
    state text NOT NULL,
    priority integer NOT NULL DEFAULT 0,       -- higher ones first
    due_mark bigint,
    deadline_mark bigint,
    attempt integer NOT NULL DEFAULT 1,
    timeout_seconds double precision NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    ended_mark bigint,                         -- set exactly in terminal states
    oldest_event_id bigint NOT NULL DEFAULT 1,
    last_event_id bigint NOT NULL DEFAULT 0,
    event_bytes bigint NOT NULL DEFAULT 0,
    file_count bigint NOT NULL DEFAULT 0,
    error_code text,
    name text,
    tags text,                                 -- JSON; null: none
    error text,
    progress text,                             -- JSON
    active boolean NOT NULL DEFAULT false,     -- among the oldest unfinished runs of its session: workers claim these
    delayed boolean NOT NULL DEFAULT false,    -- due_mark is not known to be past
    token bigint NOT NULL DEFAULT 0,           -- number of starts
    losses integer NOT NULL DEFAULT 0,         -- number of workers that were lost with it
    worker text,
    lease_until timestamptz
  ) WITH (fillfactor = 70);
  CREATE INDEX runs_state ON lk.runs (state, seq);
  CREATE UNIQUE INDEX runs_session ON lk.runs (session, seq);
  CREATE INDEX runs_waiting ON lk.runs (session, seq) WHERE state = 'queued';
  CREATE INDEX runs_live ON lk.runs (seq) WHERE ended_mark IS NULL;
  CREATE INDEX runs_ended ON lk.runs (ended_mark, seq) WHERE ended_mark IS NOT NULL;
  CREATE INDEX runs_active ON lk.runs (session) WHERE active;
  CREATE INDEX runs_claim ON lk.runs (priority DESC, seq) WHERE active AND state = 'queued' AND NOT delayed;
  CREATE INDEX runs_leased ON lk.runs (worker) WHERE state = 'running';
  CREATE INDEX runs_delayed ON lk.runs (due_mark) WHERE delayed AND state = 'queued';
  CREATE INDEX runs_deadline ON lk.runs (deadline_mark) WHERE deadline_mark IS NOT NULL AND state = 'queued';
  CREATE INDEX runs_unstarted ON lk.runs (greatest(created_at, due_mark)) WHERE state = 'queued' AND token = 0;
  CREATE TABLE lk.tags (
    tag text NOT NULL,
    run bigint NOT NULL,
    PRIMARY KEY (tag, run)
  );
  CREATE INDEX tags_run ON lk.tags (run);
  CREATE TABLE lk.messages (                   -- apart: a run's row is written anew with each of its events
    run bigint PRIMARY KEY,
    message text NOT NULL,
    graph text,                                -- its hash
    graph_name text,
    traceparent text,
    prompt_facts text                          -- JSON
  );
  CREATE INDEX messages_graph ON lk.messages (graph) WHERE graph IS NOT NULL;
  CREATE TABLE lk.graphs (                     -- each text once
    hash text PRIMARY KEY,
    text text NOT NULL
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
    place bigint NOT NULL,                     -- order of report
    PRIMARY KEY (run, name)
  );
  CREATE TABLE lk.wakes (                      -- the pending ones
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL REFERENCES lk.sessions,
    text text NOT NULL,
    bytes bigint NOT NULL
  );
  CREATE UNIQUE INDEX wakes_session ON lk.wakes (session, id);
  CREATE TABLE lk.backlog (                    -- one row: the pending wakes of all sessions
    id integer PRIMARY KEY CHECK (id = 1),
    wakes bigint NOT NULL,
    bytes bigint NOT NULL
  );
  INSERT INTO lk.backlog VALUES (1, 0, 0);
  CREATE TABLE lk.replies (
    scope text PRIMARY KEY,
    payload_hash text NOT NULL,
    reply text NOT NULL,                       -- JSON
    expires_mark bigint NOT NULL
  );
  CREATE INDEX replies_expiry ON lk.replies (expires_mark);
  CREATE TABLE lk.run_groups (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    size integer NOT NULL,
    ended integer NOT NULL DEFAULT 0
  ) WITH (fillfactor = 70);
  CREATE TABLE lk.group_runs (
    run bigint PRIMARY KEY,
    run_group bigint NOT NULL,
    run_index integer NOT NULL,                -- order of the request
    position integer                           -- order of ends; set exactly where the run has ended
  );
  CREATE INDEX group_runs_ends ON lk.group_runs (run_group, position);
  CREATE TABLE lk.deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint text NOT NULL,
    target text NOT NULL,
    run_id text NOT NULL,                      -- outlives its run
    session_key text NOT NULL,
    run_state text NOT NULL,
    finished_at bigint NOT NULL,
    ended_mark bigint NOT NULL,
    state text NOT NULL,
    attempts text NOT NULL DEFAULT '[]',       -- JSON
    token bigint NOT NULL DEFAULT 0,           -- number of claims
    due_mark bigint NOT NULL,
    since_mark bigint NOT NULL,
    settled_mark bigint                        -- set exactly where the state is not pending
  ) WITH (fillfactor = 70);
  CREATE INDEX deliveries_due ON lk.deliveries (endpoint, due_mark, id) WHERE state = 'pending';
  CREATE INDEX deliveries_since ON lk.deliveries (since_mark) WHERE state = 'pending';
  CREATE INDEX deliveries_settled ON lk.deliveries (settled_mark) WHERE settled_mark IS NOT NULL;
  CREATE INDEX deliveries_run ON lk.deliveries (run_id);
  CREATE TABLE lk.gone (
    endpoint text NOT NULL,
    target text NOT NULL,
    PRIMARY KEY (endpoint, target)
  );
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
