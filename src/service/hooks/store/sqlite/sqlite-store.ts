import { describe, LatentkitError } from "../../../../base/errors.js";
import { checkOptions, FILE, hasMethods, type OptionRules } from "../../../../base/options.js";
import { LocalQueue } from "../local-queue.js";
import { NO_EVENTS } from "../queue-store.js";
import { type Store, type SweepRequest, type SweepResult, trialRun } from "../store.js";
import { Connection } from "./connection.js";
import { deliveryRows, sweepDeliveries } from "./delivery-rows.js";
import { loadSqliteDriver, type SqliteDriver } from "./driver.js";
import { eventRows } from "./event-rows.js";
import { createRun, inboxRows, leaveGroup, removeMessage } from "./inbox.js";
import { endRun, runRows, startRun } from "./run-rows.js";

/** Options of `createSqliteStore`. */
export interface SqliteStoreOptions {
  /** The SQLite that opens the file. Default: node:sqlite or better-sqlite3, whichever is installed. */
  readonly driver?: SqliteDriver;
}

const STORE_RULES: OptionRules<SqliteStoreOptions> = {
  driver: ["an SQLite driver: { name, open }", (value) => hasMethods(value, "open")],
};

/**
 * Stores runs and events in one SQLite file, locked by this process until `close` or the process's end. Only the owner
 * can read the file and its side files. On Node 20 it needs the package better-sqlite3.
 * Fails with config.invalid (no SQLite installed, file in use, another program's database) or file.read-failed.
 */
export function createSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  checkOptions("createSqliteStore", options, STORE_RULES);
  if (!FILE[1](path)) {
    throw new LatentkitError("config.invalid", `createSqliteStore: expected ${FILE[0]}, received ${describe(path)}.`);
  }
  const db = new Connection(path, options.driver ?? loadSqliteDriver());
  const queue = new LocalQueue();
  // async turns a throw into a rejection; the work itself is done before the call returns
  return {
    ...queue.reads(),
    ...runRows(db, queue),
    ...inboxRows(db, queue),
    ...eventRows(db),
    ...deliveryRows(db),
    sweep: async (request) => db.write("trailing", () => sweep(db, request)),
    ping: async () => ping(db),
    close: async () => db.close(),
  };
}

/** Fits one page. */
const PAGE_BYTES = 1000;
/** More than a start writes. */
const START_BYTES = 65_536;

// Starts a run and takes it back; after a failure it also repeats that statement and writes more than a start does.
/**
 * Checks that a run could be started: starts one, rolls it back, and writes one page. After a failure it also repeats the
 * statement that failed, and writes as much as a start does: where both succeed, the store has recovered.
 */
function ping(db: Connection): void {
  const { failure } = db;
  db.rehearse(() => {
    failure?.repeat();
    const { run, key, started, ending, limits } = trialRun();
    createRun(db, run, key);
    startRun(db, run.id, 0, started);
    endRun(db, run.id, ending, NO_EVENTS, limits);
  });
  const bytes = failure === undefined ? PAGE_BYTES : START_BYTES;
  db.write("trailing", () => db.run("UPDATE pings SET filler = randomblob(?) WHERE id = 1", bytes));
  db.forgetFailure();
}

/** Deletes runs and replies that have outlived their retention, at most about `budget` rows. */
function sweep(db: Connection, request: SweepRequest): SweepResult {
  let budget = request.budget;
  const ended = Number(db.get("SELECT count(*) AS n FROM runs WHERE ended_mark IS NOT NULL")?.n);
  let removedRuns = 0;
  const oldest =
    "SELECT seq, session, ended_mark FROM runs WHERE ended_mark IS NOT NULL ORDER BY ended_mark, seq LIMIT 1";
  while (budget > 0) {
    const row = db.get(oldest);
    if (row === undefined) break;
    const isOld = Number(row.ended_mark) <= request.endedBefore;
    if (!isOld && ended - removedRuns <= request.maxEndedRuns) break;
    budget -= removeRun(db, Number(row.seq), Number(row.session));
    removedRuns += 1;
  }
  if (budget > 0) budget -= sweepDeliveries(db, request.endedBefore, request.maxEndedDeliveries, budget);
  const expired = db.run(
    "DELETE FROM replies WHERE scope IN (SELECT scope FROM replies WHERE expires_mark <= ? LIMIT ?)",
    request.nowMark,
    Math.max(budget, 1),
  ).changes;
  return { removedRuns, endedRuns: ended - removedRuns, more: budget - expired <= 0 };
}

/** Returns the number of deleted rows. */
function removeRun(db: Connection, seq: number, session: number): number {
  let rows = 1 + removeMessage(db, seq) + leaveGroup(db, seq);
  for (const table of ["events", "files", "tags"]) rows += db.run(`DELETE FROM ${table} WHERE run = ?`, seq).changes;
  db.run("DELETE FROM runs WHERE seq = ?", seq);
  const hasRun = "EXISTS (SELECT 1 FROM runs WHERE session = sessions.id)";
  rows += db.run(`DELETE FROM sessions WHERE id = ? AND wakes = 0 AND NOT ${hasRun}`, session).changes;
  return rows;
}
