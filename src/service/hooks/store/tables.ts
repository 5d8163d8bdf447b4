/** Words of one kind of SQL. */
export interface Dialect {
  /** Before the names of tables. */
  readonly schema: string;
  /** Type of a key that the store counts up, and of one that is another table's. */
  readonly serial: string;
  readonly foreign: string;
  /** Behind a table that has no rows besides those of its key's index. */
  readonly keyed: string;
}

// A row's texts come last: to reach the columns behind a long one, SQLite reads every page of it. A mark is steady ms
// (clock.ts), and in the deliveries of PostgreSQL ms of the server.

/** The tables and indexes that both SQL stores have. */
export const commonTables = ({ schema, serial, foreign, keyed }: Dialect): string => `
  CREATE TABLE ${schema}sessions (
    id ${serial},
    key text NOT NULL UNIQUE,
    wakes bigint NOT NULL DEFAULT 0,           -- how many are pending, and their bytes
    wake_bytes bigint NOT NULL DEFAULT 0
  );
  CREATE TABLE ${schema}runs (
    seq ${serial},
    id text NOT NULL UNIQUE,
    session bigint NOT NULL,
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
    progress text                              -- JSON
  );
  CREATE INDEX runs_ended ON ${schema}runs (ended_mark, seq) WHERE ended_mark IS NOT NULL;
  CREATE TABLE ${schema}tags (
    tag text NOT NULL,
    run bigint NOT NULL,
    PRIMARY KEY (tag, run)
  )${keyed};
  CREATE INDEX tags_run ON ${schema}tags (run);
  CREATE TABLE ${schema}messages (             -- apart: lists do not read them, and events do not write them anew
    run ${foreign} PRIMARY KEY,
    message text NOT NULL,
    graph text,                                -- its hash
    graph_name text,
    traceparent text,
    prompt_facts text                          -- JSON
  );
  CREATE INDEX messages_graph ON ${schema}messages (graph) WHERE graph IS NOT NULL;
  CREATE TABLE ${schema}graphs (               -- each text once
    hash text PRIMARY KEY,
    text text NOT NULL
  )${keyed};
  CREATE TABLE ${schema}events (
    run bigint NOT NULL,
    id bigint NOT NULL,
    event text NOT NULL,
    data text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (run, id)
  )${keyed};
  CREATE TABLE ${schema}files (
    run bigint NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    content_type text,
    place bigint NOT NULL,                     -- order of report
    PRIMARY KEY (run, name)
  )${keyed};
  CREATE TABLE ${schema}wakes (                -- the pending ones
    id ${serial},
    session bigint NOT NULL,
    text text NOT NULL,
    bytes bigint NOT NULL
  );
  CREATE TABLE ${schema}backlog (              -- one row: the pending wakes of all sessions
    id ${foreign} PRIMARY KEY CHECK (id = 1),
    wakes bigint NOT NULL,
    bytes bigint NOT NULL
  );
  INSERT INTO ${schema}backlog VALUES (1, 0, 0);
  CREATE TABLE ${schema}replies (
    scope text PRIMARY KEY,
    payload_hash text NOT NULL,
    reply text NOT NULL,                       -- JSON
    expires_mark bigint NOT NULL
  )${keyed};
  CREATE INDEX replies_expiry ON ${schema}replies (expires_mark);
  CREATE TABLE ${schema}run_groups (
    seq ${serial},
    id text NOT NULL UNIQUE,
    size integer NOT NULL,
    ended integer NOT NULL DEFAULT 0
  );
  CREATE TABLE ${schema}group_runs (
    run ${foreign} PRIMARY KEY,
    run_group bigint NOT NULL,
    run_index integer NOT NULL,                -- order of the request
    position integer                           -- order of ends; set exactly where the run has ended
  );
  CREATE INDEX group_runs_ends ON ${schema}group_runs (run_group, position);
  CREATE TABLE ${schema}deliveries (
    id ${serial},
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
  );
  CREATE INDEX deliveries_since ON ${schema}deliveries (since_mark) WHERE state = 'pending';
  CREATE INDEX deliveries_settled ON ${schema}deliveries (settled_mark) WHERE settled_mark IS NOT NULL;
  CREATE INDEX deliveries_run ON ${schema}deliveries (run_id);
  CREATE TABLE ${schema}gone (
    endpoint text NOT NULL,
    target text NOT NULL,
    PRIMARY KEY (endpoint, target)
  )${keyed};
`;
