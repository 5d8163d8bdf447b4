import { LatentkitError } from "../../../../base/errors.js";
import type { SqliteDatabase } from "./driver.js";

// spells "lkit" and distinguishes a store from any other database
const APPLICATION_ID = 0x6c6b6974;

// decision 368
/** Version of the tables: every change of them counts it up, and a store of another version is refused. */
const VERSION = 1;

// Texts that a client or an agent chose are stored as JSON, which keeps lone surrogates and NUL. A row's texts come last:
// to reach the columns behind a long one, SQLite reads every page of it. A mark is steady ms (clock.ts).
const TABLES = `
  CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    wakes INTEGER NOT NULL DEFAULT 0,          -- how many are pending, and their bytes
    wake_bytes INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL,
    origin TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,       -- higher ones first
    due_mark INTEGER,
    deadline_mark INTEGER,
    attempt INTEGER NOT NULL DEFAULT 1,
    timeout_seconds REAL NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    ended_mark INTEGER,                        -- set exactly in terminal states
    oldest_event_id INTEGER NOT NULL DEFAULT 1,
    last_event_id INTEGER NOT NULL DEFAULT 0,
    event_bytes INTEGER NOT NULL DEFAULT 0,
    file_count INTEGER NOT NULL DEFAULT 0,
    error_code TEXT,
    name TEXT,                                 -- JSON
    tags TEXT,                                 -- JSON; null: none
    error TEXT,
    progress TEXT                              -- JSON
  );
  -- each ends with the row's seq, the order of lists
  CREATE INDEX runs_state ON runs (state);
  CREATE INDEX runs_session ON runs (session);
  CREATE INDEX runs_session_state ON runs (session, state);
  CREATE INDEX runs_ended ON runs (ended_mark, seq) WHERE ended_mark IS NOT NULL;
  CREATE TABLE tags (
    tag TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (tag, run)
  ) WITHOUT ROWID;
  CREATE INDEX tags_run ON tags (run);
  CREATE TABLE messages (                      -- apart: lists and states of runs do not read them
    run INTEGER PRIMARY KEY,
    message TEXT NOT NULL,                     -- JSON
    graph TEXT,                                -- its hash
    graph_name TEXT,                           -- JSON
    traceparent TEXT,
    prompt_facts TEXT                          -- JSON
  );
  CREATE INDEX messages_graph ON messages (graph) WHERE graph IS NOT NULL;
  CREATE TABLE graphs (                        -- each text once
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL                         -- JSON
  ) WITHOUT ROWID;
  CREATE TABLE events (
    run INTEGER NOT NULL,
    id INTEGER NOT NULL,
    event TEXT NOT NULL,
    data TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (run, id)
  ) WITHOUT ROWID;
  CREATE TABLE files (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    content_type TEXT,
    place INTEGER NOT NULL,                    -- order of report
    PRIMARY KEY (run, name)
  ) WITHOUT ROWID;
  CREATE INDEX files_place ON files (run, place);
  CREATE TABLE wakes (                         -- the pending ones
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    text TEXT NOT NULL,                        -- JSON
    bytes INTEGER NOT NULL
  );
  CREATE INDEX wakes_session ON wakes (session, id, bytes);
  CREATE TABLE backlog (                       -- one row: the pending wakes of all sessions
    id INTEGER PRIMARY KEY CHECK (id = 1),
    wakes INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  );
  INSERT INTO backlog VALUES (1, 0, 0);
  CREATE TABLE replies (
    scope TEXT PRIMARY KEY,
    payload_hash TEXT NOT NULL,
    reply TEXT NOT NULL,                       -- JSON
    expires_mark INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX replies_expiry ON replies (expires_mark);
  CREATE TABLE run_groups (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE group_runs (
    run INTEGER PRIMARY KEY,
    run_group INTEGER NOT NULL,
    run_index INTEGER NOT NULL,                -- order of the request
    position INTEGER                           -- order of ends; set exactly where the run has ended
  );
  CREATE INDEX group_runs_ends ON group_runs (run_group, position);
  CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint TEXT NOT NULL,
    target TEXT NOT NULL,
    run_id TEXT NOT NULL,                      -- outlives its run
    session_key TEXT NOT NULL,
    run_state TEXT NOT NULL,
    finished_at INTEGER NOT NULL,
    ended_mark INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts TEXT NOT NULL DEFAULT '[]',       -- JSON
    token INTEGER NOT NULL DEFAULT 0,          -- number of claims
    due_mark INTEGER NOT NULL,
    since_mark INTEGER NOT NULL,
    settled_mark INTEGER                       -- set exactly where the state is not pending
  );
  CREATE INDEX deliveries_due ON deliveries (endpoint, due_mark) WHERE state = 'pending';
  CREATE INDEX deliveries_since ON deliveries (since_mark) WHERE state = 'pending';
  CREATE INDEX deliveries_settled ON deliveries (settled_mark) WHERE settled_mark IS NOT NULL;
  CREATE INDEX deliveries_run ON deliveries (run_id);
  CREATE TABLE gone (
    endpoint TEXT NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (endpoint, target)
  ) WITHOUT ROWID;
  CREATE TABLE queue (                         -- one row
    id INTEGER PRIMARY KEY CHECK (id = 1),
    paused INTEGER NOT NULL                    -- 1: no run starts
  );
  INSERT INTO queue VALUES (1, 0);
  CREATE TABLE pings (id INTEGER PRIMARY KEY CHECK (id = 1), filler BLOB NOT NULL);
  INSERT INTO pings VALUES (1, zeroblob(0));
`;

/** Returns whether a file is empty. Refuses another program's database and another version's store, before any write. */
export function isEmpty(database: SqliteDatabase, path: string): boolean {
  if (Number(database.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.n) === 0) return true;
  const number = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const refusal = (why: string) => new LatentkitError("config.invalid", `The store file ${path} ${why}`);
  if (number("application_id") !== APPLICATION_ID) {
    throw refusal("is a database of another program: use another file.");
  }
  const version = number("user_version");
  if (version === VERSION) return false;
  throw refusal(`has version ${version}, but this latentkit expects version ${VERSION}: use another file.`);
}

export const createTables = (database: SqliteDatabase): void =>
  database.exec(
    `BEGIN IMMEDIATE; PRAGMA application_id = ${APPLICATION_ID}; ${TABLES} PRAGMA user_version = ${VERSION}; COMMIT`,
  );
