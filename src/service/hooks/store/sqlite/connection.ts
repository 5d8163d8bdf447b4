import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { LatentkitError } from "../../../../errors.js";
import { HookError } from "../../hook-error.js";
import type { SqliteDatabase, SqliteDriver, SqliteStatement, SqlRow, SqlValue } from "./driver.js";
import { identify, migrate } from "./schema.js";

/** Power loss may take `trailing` commits, never `durable` ones; a killed process loses neither. */
export type Durability = "durable" | "trailing";

/** Something failed since the last good ping. */
export interface Failure {
  /** Runs the statement that failed last, if one did; throws where it still fails. */
  repeat(): void;
}

/** One exclusively held database: statements prepared once, transactions, failures as HookError. */
export class Connection {
  readonly #database: SqliteDatabase;
  readonly #statements = new Map<string, SqliteStatement>();
  #durability: Durability | undefined;
  #isBroken = false;
  #isClosed = false;
  #failure: Failure | undefined;

  /** Fails with config.invalid where another process holds the file, file.read-failed where it is no store. */
  constructor(path: string, driver: SqliteDriver) {
    this.#database = openClaimed(path, driver);
  }

  run(sql: string, ...values: SqlValue[]): { changes: number; lastId: number } {
    return this.#tried(() => this.#statement(sql).run(...values));
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#tried(() => this.#statement(sql).get(...values));
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    return this.#tried(() => this.#statement(sql).all(...values));
  }

  get failure(): Failure | undefined {
    return this.#failure;
  }

  forgetFailure(): void {
    this.#failure = undefined;
  }

  /** Runs `work` whole or not at all. */
  write<T>(durability: Durability, work: () => T): T {
    return this.#guarded(() => {
      this.#mend();
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

  /** Runs `work` and takes back what it did: nothing of it is written. */
  attempt(work: () => void): void {
    this.#guarded(() => {
      this.#mend();
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
    return this.#guarded(() => {
      this.#mend();
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

  /** Remembers what failed. A broken constraint is the caller's fault, not the store's. */
  #tried<T>(statement: () => T): T {
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
  #mend(): void {
    if (this.#isBroken) this.#rollBack();
    if (this.#isBroken) throw new Error("a failed transaction could not be rolled back");
  }

  #guarded<T>(work: () => T): T {
    try {
      if (this.#isClosed) throw new Error("the store is closed");
      return work();
    } catch (error) {
      if (error instanceof HookError) throw error;
      // a commit, say: no statement to repeat
      this.#failure ??= { repeat: () => undefined };
      throw new HookError("store_unavailable", undefined, { cause: error });
    }
  }
}

const isBrokenConstraint = (error: unknown) => /constraint/i.test(String(error));

/** A row that was stored in the meantime is no failure of the store. */
function repeat(statement: () => unknown): void {
  try {
    statement();
  } catch (error) {
    if (!isBrokenConstraint(error)) throw error;
  }
}

function openClaimed(path: string, driver: SqliteDriver): SqliteDatabase {
  let database: SqliteDatabase | undefined;
  try {
    if (path !== ":memory:") restrictMode(path);
    database = driver.open(path);
    // the lock lives in the kernel: it goes with the process, however that ends
    database.exec("PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE");
    const version = identify(database, resolve(path));
    database.exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; COMMIT");
    // a commit writes some seven pages: SQLite's own 1,000 would sync the whole file every 140 runs
    database.exec("PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY");
    migrate(database, version);
    return database;
  } catch (error) {
    database?.close();
    throw openError(error, path);
  }
}

function openError(error: unknown, path: string): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const shown = resolve(path);
  if (/locked|busy/i.test(reason)) {
    const sentence = `The store file ${shown} is in use by another process: stop it, or give this one its own file.`;
    return new LatentkitError("config.invalid", sentence, {}, { cause: error });
  }
  return new LatentkitError(
    "file.read-failed",
    `The store file ${shown} cannot be opened: ${reason}.`,
    {},
    { cause: error },
  );
}

/** Messages and answers are nobody else's business. SQLite gives its side files the mode of the file. */
function restrictMode(path: string): void {
  try {
    // an existing file is never opened here: closing it again would drop SQLite's locks of this process
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0) chmodSync(path, mode & 0o700);
  }
}
