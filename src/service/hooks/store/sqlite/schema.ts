import { LatentkitError } from "../../../../base/errors.js";
import { commonTables } from "../tables.js";
import type { SqliteDatabase } from "./driver.js";

// spells "lkit" and distinguishes a store from any other database
const APPLICATION_ID = 0x6c6b6974;

// decisions: A store has one version of its tables
/** Version of the tables: every change of them counts it up, and a store of another version is refused. */
const VERSION = 1;

// Texts that a client or an agent chose are stored as JSON, which keeps lone surrogates and NUL.
const TABLES = `
  ${commonTables({
    schema: "",
    serial: "INTEGER PRIMARY KEY AUTOINCREMENT",
    foreign: "INTEGER",
    keyed: " WITHOUT ROWID",
  })}
  -- each ends with the row's seq, the order of lists
  CREATE INDEX runs_state ON runs (state);
  CREATE INDEX runs_session ON runs (session);
  CREATE INDEX runs_session_state ON runs (session, state);
  CREATE INDEX files_place ON files (run, place);
  CREATE INDEX wakes_session ON wakes (session, id, bytes);
  CREATE INDEX deliveries_due ON deliveries (endpoint, due_mark) WHERE state = 'pending';
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
