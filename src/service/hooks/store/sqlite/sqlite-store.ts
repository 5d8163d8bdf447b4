import { randomUUID } from "node:crypto";
import { describe, LatentkitError } from "../../../../base/errors.js";
import { checkOptions, FILE, hasMethods, type OptionRules } from "../../../../base/options.js";
import { PLAIN_TERMS } from "../../run.js";
import { LocalQueue, queuedRun } from "../local-queue.js";
import type { Store, SweepRequest, SweepResult } from "../store.js";
import { Connection } from "./connection.js";
import * as deliveries from "./delivery-rows.js";
import { sweepDeliveries } from "./delivery-rows.js";
import { loadSqliteDriver, type SqliteDriver } from "./driver.js";
import * as events from "./event-rows.js";
import * as groups from "./inbox.js";
import * as inbox from "./inbox.js";
import { createRun, leaveGroup, removeMessage } from "./inbox.js";
import * as runs from "./run-rows.js";
import { endRun, openQueue, recoverLost, startRun, startTaken } from "./run-rows.js";

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
    openQueue: async (perSession) => db.read(() => openQueue(db, queue, perSession)),
    claim: async (claim) => startTaken(db, queue, claim),
    async release(id, token) {
      const isReleased = queue.isHeld(id, token) && db.write("durable", () => runs.requeueRun(db, id));
      if (isReleased) queue.putBack(id);
      return isReleased;
    },
    recoverLost: async (policy) => recoverLost(db, queue, policy),
    countRuns: async (most) => queue.counts(most),
    positionOf: async (id, most) => queue.positionOf(id, most),
    nextMarks: async (afterMark) => queue.nextMarks(afterMark),
    overdue: async (readyBefore, count) => queue.overdue(readyBefore, count),
    pastDeadline: async (nowMark, count) => queue.pastDeadline(nowMark, count),
    isPaused: async () => db.read(() => db.get("SELECT paused FROM queue")?.paused === 1),
    setPaused: async (isPaused) => {
      db.write("durable", () => db.run("UPDATE queue SET paused = ?", isPaused ? 1 : 0));
      queue.isPaused = isPaused;
    },
    findReply: async (scope, nowMark) => db.read(() => inbox.findReply(db, scope, nowMark)),
    async createRun(run, key) {
      const result = db.write("durable", () => inbox.createRun(db, run, () => queue.refusal([run]), key));
      if (result.kind === "created") queue.add(queuedRun(run, result.seq));
      return result;
    },
    async createGroup(group, key) {
      const refusal = () => queue.refusal(group.runs);
      const result = db.write("durable", () => groups.createGroup(db, group, refusal, key));
      if (result.kind !== "created") return result;
      for (const [index, run] of group.runs.entries()) queue.add(queuedRun(run, result.seqs[index]!));
      return result;
    },
    addWake: async (wake, key) => db.write("durable", () => inbox.addWake(db, wake, key)),
    pendingSessions: async () => db.read(() => inbox.pendingSessions(db)),
    getRun: async (id) => db.read(() => runs.getRun(db, id)),
    getSummary: async (id) => db.read(() => runs.getSummary(db, id)),
    getStatus: async (id, maxFiles) => db.read(() => runs.getStatus(db, id, maxFiles)),
    listRuns: async (before, limit, filter) => db.read(() => runs.listRuns(db, before, limit, filter)),
    async retryRun(id, retry, batch, limits, token) {
      if (token !== undefined && !queue.isHeld(id, token)) return false;
      const isQueued = db.write("durable", () => runs.retryRun(db, id, retry, batch, limits));
      if (isQueued) queue.putBack(id, retry.dueMark);
      return isQueued;
    },
    append: async (id, batch, limits, token) =>
      (token === undefined || queue.isHeld(id, token)) &&
      db.write("trailing", () => events.append(db, id, batch, limits)),
    async endRun(id, ending, batch, limits, token) {
      if (token !== undefined && !queue.isHeld(id, token)) return false;
      const isEnded = db.write("durable", () => runs.endRun(db, id, ending, batch, limits));
      if (isEnded) queue.end(id);
      return isEnded;
    },
    readEvents: async (id, after, maxEvents, maxBytes) =>
      db.read(() => events.readEvents(db, id, after, maxEvents, maxBytes)),
    readGroup: async (id, after, most) => db.read(() => groups.readGroup(db, id, after, most)),
    groupOf: async (runId) => db.read(() => groups.groupOf(db, runId)),
    terminalEvent: async (id) => db.read(() => events.terminalEvent(db, id)),
    getFile: async (id, name) => db.read(() => events.getFile(db, id, name)),
    removeFile: async (id, name) => db.write("durable", () => events.removeFile(db, id, name)),
    claimDeliveries: async (claim) => deliveries.claimDeliveries(db, claim),
    settleDelivery: async (id, token, settlement) =>
      db.write("trailing", () => deliveries.settleDelivery(db, id, token, settlement)),
    getDelivery: async (id) => db.read(() => deliveries.getDelivery(db, id)),
    listDeliveries: async (before, limit, filter) =>
      db.read(() => deliveries.listDeliveries(db, before, limit, filter)),
    countPendingDeliveries: async (most) => db.read(() => deliveries.countPendingDeliveries(db, most)),
    redeliver: async (id, nowMark) => db.write("durable", () => deliveries.redeliver(db, id, nowMark)),
    sweep: async (request) => db.write("trailing", () => sweep(db, request)),
    ping: async () => ping(db),
    close: async () => db.close(),
  };
}

/** Fits one page. */
const PAGE_BYTES = 1000;
/** More than a start writes. */
const START_BYTES = 65_536;

// decision 149
/**
 * Checks that a run could be started: starts one, rolls it back, and writes one page. After a failure it also repeats the
 * statement that failed, and writes as much as a start does: where both succeed, the store has recovered.
 */
function ping(db: Connection): void {
  const { failure } = db;
  db.rehearse(() => {
    failure?.repeat();
    createAndEndRun(db);
  });
  const bytes = failure === undefined ? PAGE_BYTES : START_BYTES;
  db.write("trailing", () => db.run("UPDATE pings SET filler = randomblob(?) WHERE id = 1", bytes));
  db.forgetFailure();
}

function createAndEndRun(db: Connection): void {
  const id = randomUUID();
  const message = "trial";
  const common = {
    id,
    sessionKey: id,
    start: { origin: "agent" },
    terms: { ...PLAIN_TERMS, timeoutSeconds: 1 },
    createdAt: 0,
  } as const;
  const key = { scope: id, payloadHash: "", nowMark: 0, expiresMark: 0 };
  const graph = { name: null, text: id };
  createRun(db, { ...common, graph, createdMark: 0, maxWakeBytes: 0, compose: () => message }, undefined, key);
  startRun(db, id, 0, { event: "status", data: message });
  const ending = { from: ["running"], to: "succeeded", finishedAt: 0, endedMark: 0, error: null } as const;
  const terminal = { event: "done", data: message };
  endRun(db, id, { ...ending, terminal }, { skip: 0, events: [], files: [] }, { events: 1, bytes: 1 });
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
    const isDue =
      row !== undefined &&
      (Number(row.ended_mark) <= request.endedBefore || ended - removedRuns > request.maxEndedRuns);
    if (!isDue) break;
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
  let rows = 1;
  rows += removeMessage(db, seq) + leaveGroup(db, seq);
  for (const table of ["events", "files", "tags"]) rows += db.run(`DELETE FROM ${table} WHERE run = ?`, seq).changes;
  db.run("DELETE FROM runs WHERE seq = ?", seq);
  const hasRun = "EXISTS (SELECT 1 FROM runs WHERE session = sessions.id)";
  rows += db.run(`DELETE FROM sessions WHERE id = ? AND wakes = 0 AND NOT ${hasRun}`, session).changes;
  return rows;
}
