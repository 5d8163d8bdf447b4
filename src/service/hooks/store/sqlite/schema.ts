import { LatentkitError } from "../../../../base/errors.js";
import type { SqliteDatabase } from "./driver.js";

// spells "lkit" and distinguishes a store from any other database
const APPLICATION_ID = 0x6c6b6974;

/** One migration per schema version; a released one never changes. */
const STEPS = [
  `
  CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE
  );
  CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL,
    origin TEXT NOT NULL,
    name TEXT,                       -- JSON text: keeps lone surrogates and NUL
    message TEXT NOT NULL,           -- JSON text
    state TEXT NOT NULL,
    timeout_seconds REAL NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    ended_mark INTEGER,              -- steady ms; set exactly in terminal states
    oldest_event INTEGER NOT NULL DEFAULT 1,
    last_event INTEGER NOT NULL DEFAULT 0,
    event_bytes INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    error_code TEXT
  );
  CREATE INDEX runs_live ON runs (state, seq) WHERE ended_mark IS NULL;
  CREATE INDEX runs_ended ON runs (ended_mark, seq) WHERE ended_mark IS NOT NULL;
  CREATE INDEX runs_session ON runs (session);
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
    PRIMARY KEY (run, name)
  ) WITHOUT ROWID;
  CREATE TABLE wakes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    text TEXT NOT NULL,              -- JSON text
    run INTEGER                      -- the run that consumed it
  );
  CREATE INDEX wakes_pending ON wakes (session, id) WHERE run IS NULL;
  CREATE INDEX wakes_consumed ON wakes (run) WHERE run IS NOT NULL;
  CREATE TABLE answers (
    scope TEXT PRIMARY KEY,
    payload_hash TEXT NOT NULL,
    answer TEXT NOT NULL,
    expires_mark INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX answers_expiry ON answers (expires_mark);
  CREATE TABLE pings (id INTEGER PRIMARY KEY, count INTEGER NOT NULL);
  INSERT INTO pings VALUES (1, 0);
  `,
  `
  DROP TABLE pings;
  CREATE TABLE pings (id INTEGER PRIMARY KEY, filler BLOB NOT NULL);
  INSERT INTO pings VALUES (1, zeroblob(0));
  `,
  `
  -- to reach the columns behind a long text, SQLite reads every page of it
  CREATE TABLE messages (
    run INTEGER PRIMARY KEY,
    message TEXT NOT NULL            -- JSON text
  );
  INSERT INTO messages SELECT seq, message FROM runs;
  ALTER TABLE runs DROP COLUMN message;

  ALTER TABLE wakes ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE wakes SET bytes = length(CAST(text AS BLOB)) WHERE run IS NULL;
  UPDATE wakes SET text = '""' WHERE run IS NOT NULL;
  DROP INDEX wakes_pending;
  CREATE INDEX wakes_pending ON wakes (session, id, bytes) WHERE run IS NULL;
  CREATE TABLE backlogs (
    session INTEGER PRIMARY KEY,     -- 0: of all sessions together
    wakes INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  );
  INSERT INTO backlogs SELECT session, count(*), sum(bytes) FROM wakes WHERE run IS NULL GROUP BY session;
  INSERT INTO backlogs SELECT 0, count(*), total(bytes) FROM wakes WHERE run IS NULL;

  ALTER TABLE runs ADD COLUMN progress TEXT;                       -- JSON text
  ALTER TABLE runs ADD COLUMN files INTEGER NOT NULL DEFAULT 0;    -- how many
  UPDATE runs SET files = (SELECT count(*) FROM files WHERE run = runs.seq);
  ALTER TABLE files ADD COLUMN place INTEGER NOT NULL DEFAULT 0;   -- order of report
  CREATE INDEX files_in_order ON files (run, place);

  -- each ends with the row's seq, the order of lists
  DROP INDEX runs_live;
  CREATE INDEX runs_state ON runs (state);
  CREATE INDEX runs_session_state ON runs (session, state);
  `,
  `
  CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint TEXT NOT NULL,
    target TEXT NOT NULL,
    run_id TEXT NOT NULL,            -- outlives its run
    session_key TEXT NOT NULL,
    run_state TEXT NOT NULL,
    finished_at INTEGER NOT NULL,
    ended_mark INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts TEXT NOT NULL DEFAULT '[]',       -- JSON text
    token INTEGER NOT NULL DEFAULT 0,
    due_mark INTEGER NOT NULL,       -- steady ms, as the next two
    since_mark INTEGER NOT NULL,
    settled_mark INTEGER             -- set exactly where the state is not pending
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
  `,
  `
  ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;     -- higher ones first
  ALTER TABLE runs ADD COLUMN due_mark INTEGER;                        -- steady ms, as the next one
  ALTER TABLE runs ADD COLUMN deadline_mark INTEGER;
  ALTER TABLE runs ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;     -- how many failed
  ALTER TABLE runs ADD COLUMN tags TEXT;                               -- JSON text; null: none
  CREATE TABLE tags (
    tag TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (tag, run)
  ) WITHOUT ROWID;
  CREATE INDEX tags_run ON tags (run);
  `,
  `
  CREATE TABLE graphs (                -- each text once
    hash TEXT PRIMARY KEY,
    text TEXT NOT NULL               -- JSON text
  ) WITHOUT ROWID;
  ALTER TABLE messages ADD COLUMN graph TEXT;          -- its hash
  ALTER TABLE messages ADD COLUMN graph_name TEXT;     -- JSON text
  ALTER TABLE messages ADD COLUMN traceparent TEXT;
  CREATE INDEX messages_graph ON messages (graph) WHERE graph IS NOT NULL;
  `,
  `
  CREATE TABLE queue (id INTEGER PRIMARY KEY CHECK (id = 1), paused INTEGER NOT NULL);
  INSERT INTO queue VALUES (1, 0);
  `,
  `
  CREATE TABLE run_groups (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE group_runs (
    run INTEGER PRIMARY KEY,
    run_group INTEGER NOT NULL,
    item INTEGER NOT NULL,           -- order of the request
    position INTEGER                 -- order of ends; set exactly where the run has ended
  );
  CREATE INDEX group_runs_ends ON group_runs (run_group, position);
  `,
];

/** Returns the file's schema version. Refuses another program's database and a newer schema, before any write. */
export function identify(database: SqliteDatabase, path: string): number {
  const number = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const version = number("user_version");
  const isEmpty = Number(database.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.n) === 0;
  const refusal = (why: string) => new LatentkitError("config.invalid", `The store file ${path} ${why}`);
  if (!isEmpty && number("application_id") !== APPLICATION_ID) {
    throw refusal("is a database of another program: use another file.");
  }
  if (version > STEPS.length) {
    throw refusal(`has schema ${version}, but this latentkit reads schemas up to ${STEPS.length}: update latentkit.`);
  }
  return version;
}

/** Migrates a new or older file to the newest schema; `to` names an older one, for tests. */
export function migrate(database: SqliteDatabase, version: number, to = STEPS.length): void {
  if (version === to) return;
  database.exec(`BEGIN IMMEDIATE; PRAGMA application_id = ${APPLICATION_ID};`);
  for (const step of STEPS.slice(version, to)) database.exec(step);
  database.exec(`PRAGMA user_version = ${to}; COMMIT`);
}
