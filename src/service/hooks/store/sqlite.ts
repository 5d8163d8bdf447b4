import { describe, LatentkitError } from "../../../errors.js";
import { checkOptions, FILE, hasMethods, type OptionRules } from "../../../options.js";
import { Connection } from "./sqlite-connection.js";
import { loadSqliteDriver, type SqliteDriver } from "./sqlite-driver.js";
import * as events from "./sqlite-events.js";
import * as inbox from "./sqlite-inbox.js";
import { ping } from "./sqlite-ping.js";
import * as runs from "./sqlite-runs.js";
import { sweep } from "./sqlite-sweep.js";
import type { Store } from "./store.js";

/** Options of `createSqliteStore`. */
export interface SqliteStoreOptions {
  /** node:sqlite or better-sqlite3, whichever is there, where absent. */
  readonly driver?: SqliteDriver;
}

const STORE_RULES: OptionRules<SqliteStoreOptions> = {
  driver: ["an SQLite driver: { name, open }", (value) => hasMethods(value, "open")],
};

/**
 * Runs and events in one SQLite file, held by this process alone until `close` or the process's end. The file and its
 * side files are readable by their owner only.
 * Fails with config.invalid (no SQLite installed, file in use, another program's database) or file.read-failed.
 */
export function createSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  checkOptions("createSqliteStore", options, STORE_RULES);
  if (!FILE[1](path)) {
    throw new LatentkitError("config.invalid", `createSqliteStore: expected ${FILE[0]}, received ${describe(path)}.`);
  }
  const db = new Connection(path, options.driver ?? loadSqliteDriver());
  // async turns what these throw into a rejection; the work itself is done before the call returns
  return {
    leftOver: async () => db.read(() => runs.leftOver(db)),
    findAnswer: async (scope, nowMark) => db.read(() => inbox.findAnswer(db, scope, nowMark)),
    createRun: async (run, key) => db.write("durable", () => inbox.createRun(db, run, key)),
    addWake: async (wake, key) => db.write("durable", () => inbox.addWake(db, wake, key)),
    pendingSessions: async () => db.read(() => inbox.pendingSessions(db)),
    getRun: async (id) => db.read(() => runs.getRun(db, id)),
    getSummary: async (id) => db.read(() => runs.getSummary(db, id)),
    getStatus: async (id, maxFiles) => db.read(() => runs.getStatus(db, id, maxFiles)),
    listRuns: async (before, limit, filter) => db.read(() => runs.listRuns(db, before, limit, filter)),
    startRun: async (id, startedAt, event) => db.write("trailing", () => runs.startRun(db, id, startedAt, event)),
    requeueRun: async (id) => db.write("durable", () => runs.requeueRun(db, id)),
    append: async (id, batch, keep) => db.write("trailing", () => events.append(db, id, batch, keep)),
    endRun: async (id, ending, batch, keep) => db.write("durable", () => runs.endRun(db, id, ending, batch, keep)),
    readEvents: async (id, after, maxEvents, maxBytes) =>
      db.read(() => events.readEvents(db, id, after, maxEvents, maxBytes)),
    terminalEvent: async (id) => db.read(() => events.terminalEvent(db, id)),
    getFile: async (id, name) => db.read(() => events.getFile(db, id, name)),
    sweep: async (request) => db.write("trailing", () => sweep(db, request)),
    ping: async () => ping(db),
    close: async () => db.close(),
  };
}
