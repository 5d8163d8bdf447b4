import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { LatentkitError } from "../../../../base/errors.js";
import { HookError } from "../../hook-error.js";
import { commonTables } from "../tables.js";
import type { SqliteDatabase, SqliteDriver, SqliteStatement, SqlRow, SqlValue } from "./driver.js";

/** A power loss may take `trailing` commits, never `durable` ones; a killed process takes neither. */
type Durability = "durable" | "trailing";

/** A failure since the last good ping. */
interface Failure {
  /** Runs the statement that failed last, if one did; throws where it still fails. */
  repeat(): void;
}

/** One exclusively locked database: statements prepared once, transactions, failures as HookError. */
export class Connection {
  readonly #database: SqliteDatabase;
  readonly #statements = new Map<string, SqliteStatement>();
  #durability: Durability | undefined;
  #isBroken = false;
  #isClosed = false;
  #failure: Failure | undefined;

  /** Fails with config.invalid if another process uses the file or it is not a store, else with file.read-failed. */
  constructor(path: string, driver: SqliteDriver) {
    this.#database = openClaimed(path, driver);
  }

  run(sql: string, ...values: SqlValue[]): { changes: number; lastId: number } {
    return this.#attempt(() => this.#statement(sql).run(...values));
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#attempt(() => this.#statement(sql).get(...values));
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    return this.#attempt(() => this.#statement(sql).all(...values));
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  forgetFailure(): void {
    this.#failure = undefined;
  }

  /** Runs `work` as one transaction. */
  write<T>(durability: Durability, work: () => T): T {
    return this.#guard(() => {
      this.#endBrokenTransaction();
      this.#setDurability(durability);
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        this.#database.exec("COMMIT");
        return result;
      } catch (error) {
        this.#rollBack();
        throw error;
      }
    });
  }

  /** Runs `work` as a transaction and rolls it back: nothing is written. */
  rehearse(work: () => void): void {
    this.#guard(() => {
      this.#endBrokenTransaction();
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        work();
      } finally {
        this.#rollBack();
      }
    });
  }

  /** Consistent without a transaction: nothing else runs between the statements of one call. */
  read<T>(work: () => T): T {
    return this.#guard(() => {
      this.#endBrokenTransaction();
      return work();
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#statements.clear();
    this.#database.close();
  }

  #statement(sql: string): SqliteStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** Remembers a failed statement. A broken constraint is the caller's fault, not the store's. */
  #attempt<T>(statement: () => T): T {
    try {
      return statement();
    } catch (error) {
      if (!isBrokenConstraint(error)) this.#failure = { repeat: () => repeat(statement) };
      throw error;
    }
  }

  #setDurability(durability: Durability): void {
    if (this.#durability === durability) return;
    this.#database.exec(`PRAGMA synchronous = ${durability === "durable" ? "FULL" : "NORMAL"}`);
    this.#durability = durability;
  }

  #rollBack(): void {
    try {
      this.#database.exec("ROLLBACK");
      this.#isBroken = false;
    } catch (error) {
      // SQLite rolls back by itself when the disk is full
      this.#isBroken = !/no transaction/i.test(String(error));
    }
  }

  /** A transaction that could not be rolled back must not swallow the next one. */
  #endBrokenTransaction(): void {
    if (this.#isBroken) this.#rollBack();
    if (this.#isBroken) throw new Error("a failed transaction could not be rolled back");
  }

  #guard<T>(work: () => T): T {
    try {
      if (this.#isClosed) throw new Error("the store is closed");
      return work();
    } catch (error) {
      if (error instanceof HookError) throw error;
      // for example a commit: no statement to repeat
      this.#failure ??= { repeat: () => undefined };
      throw new HookError("store_unavailable", undefined, { cause: error });
    }
  }
}

const isBrokenConstraint = (error: unknown) => /constraint/i.test(String(error));

/** Runs a statement again; a row that was stored in the meantime is no failure. */
function repeat(statement: () => unknown): void {
  try {
    statement();
  } catch (error) {
    if (!isBrokenConstraint(error)) throw error;
  }
}

function openClaimed(path: string, driver: SqliteDriver): SqliteDatabase {
  let database: SqliteDatabase | undefined;
  const isFile = path !== ":memory:";
  try {
    if (isFile) requireFile(path);
    database = driver.open(path);
    // the kernel holds the lock: it ends with the process, however that ends
    database.exec("PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE");
    const isNew = isEmpty(database, resolve(path));
    // only now is it known to be a store: the mode of anything else is its owner's affair
    if (isFile) restrictMode(path);
    database.exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; COMMIT");
    // a commit writes some seven pages: SQLite's own 1,000 would sync the whole file every 140 runs
    database.exec("PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY");
    if (isNew) createTables(database);
    return database;
  } catch (error) {
    database?.close();
    throw openError(error, path);
  }
}

function openError(error: unknown, path: string): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const file = resolve(path);
  if (/locked|busy/i.test(reason)) {
    const sentence = `The store file ${file} is in use by another process: stop that one, or use another file.`;
    return new LatentkitError("config.invalid", sentence, {}, { cause: error });
  }
  return new LatentkitError("file.read-failed", `Cannot open the store file ${file}: ${reason}.`, {}, { cause: error });
}

/** Makes a missing file. Fails with config.invalid for a folder, a device or the like. */
function requireFile(path: string): void {
  try {
    // an existing file is never opened here: closing it again would drop SQLite's locks of this process
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const stats = statSync(path);
    if (stats.isFile()) return;
    const received = stats.isDirectory() ? "a folder" : "something else";
    throw new LatentkitError("config.invalid", `Store ${resolve(path)}: expected a file, received ${received}.`);
  }
}

/** Lets only the owner read messages and responses, also in SQLite's log, which gets the mode of the file. */
function restrictMode(path: string): void {
  for (const file of [path, `${path}-wal`]) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if ((mode & 0o077) !== 0) chmodSync(file, mode & 0o700);
  }
}

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
function isEmpty(database: SqliteDatabase, path: string): boolean {
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

/** Makes the tables of a new store. @internal */
export const createTables = (database: SqliteDatabase): void =>
  database.exec(
    `BEGIN IMMEDIATE; PRAGMA application_id = ${APPLICATION_ID}; ${TABLES} PRAGMA user_version = ${VERSION}; COMMIT`,
  );
