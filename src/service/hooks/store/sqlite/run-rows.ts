import type { RunFilter, RunOrigin, RunRow, RunState } from "../../run.js";
import type { LocalQueue, QueuedRun } from "../local-queue.js";
import {
  type Ending,
  type EventBatch,
  type EventLimits,
  type NewEvent,
  NO_EVENTS,
  type QueueStore,
} from "../queue-store.js";
import type { RunStore } from "../store.js";
import { MESSAGE, numberOrNull, SUMMARY, whereOf } from "../tables.js";
import type { Connection } from "./connection.js";
import { addDeliveries } from "./delivery-rows.js";
import type { SqlValue } from "./driver.js";
import { addEvents, listFiles, orNull, terminalEvent, toRun, toStatus, toSummary } from "./event-rows.js";
import { countEnd } from "./inbox.js";

const FROM_RUNS = "FROM runs JOIN sessions ON sessions.id = runs.session";

/** The runs: their states, and the way from one to the next. Each change of the queue follows that of the rows. */
export const runRows = (
  db: Connection,
  queue: LocalQueue,
): Omit<QueueStore, keyof ReturnType<LocalQueue["reads"]>> & RunStore => ({
  openQueue: async (perSession) =>
    db.read(() => {
      queue.open(perSession, readRuns(db, "queued"), readRuns(db, "running"));
      queue.isPaused = isPaused(db);
      return Number(db.get("SELECT max(ended_mark) AS mark FROM runs WHERE ended_mark IS NOT NULL")!.mark ?? 0);
    }),
  /** Runs whose start cannot be stored are back in their places. */
  async claim({ startedAt, event, ...claim }) {
    const taken = queue.take(claim);
    if (taken.length === 0) return [];
    try {
      const rows = db.write("trailing", () => taken.map(({ id }) => startRun(db, id, startedAt, event)));
      for (const run of taken) run.hasStarted = true;
      return rows.map((run, index) => ({ run, token: taken[index]!.token, readyMark: taken[index]!.readyMark }));
    } catch (error) {
      for (const { id } of taken) queue.putBack(id);
      throw error;
    }
  },
  async release(id, token) {
    const isReleased = queue.isHeld(id, token) && db.write("durable", () => requeueRun(db, id));
    if (isReleased) queue.putBack(id);
    return isReleased;
  },
  async recoverLost({ worker, requeues, ending, limits, count }) {
    const lost = queue.lostTo(worker, count).map(({ id }) => id);
    const isRequeued = requeues > 0;
    if (lost.length > 0) {
      db.write("durable", () => {
        for (const id of lost) {
          if (isRequeued) requeueRun(db, id);
          else endRun(db, id, { ...ending, from: ["running"] }, NO_EVENTS, limits);
        }
      });
    }
    for (const id of lost) {
      if (isRequeued) queue.putBack(id);
      else queue.end(id);
    }
    return isRequeued ? { requeued: lost, ended: [] } : { requeued: [], ended: lost };
  },
  isPaused: async () => db.read(() => isPaused(db)),
  async setPaused(isPaused) {
    db.write("durable", () => db.run("UPDATE queue SET paused = ?", isPaused ? 1 : 0));
    queue.isPaused = isPaused;
  },
  getRun: async (id) => db.read(() => getRun(db, id)),
  getSummary: async (id) => db.read(() => getSummary(db, id)),
  getStatus: async (id, maxFiles) =>
    db.read(() => {
      const sql = `SELECT ${SUMMARY}, runs.progress, runs.file_count ${FROM_RUNS} WHERE runs.id = ?`;
      return orNull(db.get(sql, id), (row) =>
        toStatus(row, listFiles(db, Number(row.seq), maxFiles), terminalEvent(db, id)),
      );
    }),
  listRuns: async (before, limit, { state, sessionKey, tag }: RunFilter = {}) =>
    db.read(() => {
      const session =
        sessionKey === undefined ? undefined : db.get("SELECT id FROM sessions WHERE key = ?", sessionKey);
      if (sessionKey !== undefined && session === undefined) return [];
      const seq = tag === undefined ? "runs.seq" : "tags.run";
      const { where, values } = whereOf<SqlValue>([
        ["tags.tag = ?", tag],
        ["runs.session = ?", session?.id],
        ["runs.state = ?", state],
        [`${seq} < ?`, before ?? undefined],
      ]);
      // a cross join is done from left to right: from the tag's runs, in order
      const from =
        tag === undefined ? FROM_RUNS : FROM_RUNS.replace("runs", "tags CROSS JOIN runs ON runs.seq = tags.run");
      const sql = `SELECT ${SUMMARY} ${from} ${where} ORDER BY ${seq} DESC LIMIT ?`;
      return db.all(sql, ...values, limit).map(toSummary);
    }),
  async retryRun(id, { dueMark, event }, batch, limits, token) {
    if (!queue.isHeld(id, token)) return false;
    const isQueued = db.write("durable", () => {
      const run = db.get("SELECT seq FROM runs WHERE id = ? AND state = 'running'", id);
      if (run === undefined) return false;
      addEvents(db, id, { ...batch, files: [], events: [...batch.events, event] }, limits);
      db.run("DELETE FROM files WHERE run = ?", run.seq!);
      const sql = `UPDATE runs SET state = 'queued', started_at = NULL, progress = NULL, file_count = 0, due_mark = ?,
        attempt = attempt + 1 WHERE seq = ?`;
      db.run(sql, dueMark, run.seq!);
      return true;
    });
    if (isQueued) queue.putBack(id, dueMark);
    return isQueued;
  },
  append: async (id, batch, limits, token) =>
    queue.isHeld(id, token) &&
    db.write("trailing", () => {
      const isRunning = db.get("SELECT 1 AS yes FROM runs WHERE id = ? AND state = 'running'", id) !== undefined;
      if (isRunning) addEvents(db, id, batch, limits);
      return isRunning;
    }),
  async endRun(id, ending, batch, limits, token) {
    if (!queue.isHeld(id, token)) return false;
    const isEnded = db.write("durable", () => endRun(db, id, ending, batch, limits));
    if (isEnded) queue.end(id);
    return isEnded;
  },
});

const isPaused = (db: Connection): boolean => db.get("SELECT paused FROM queue")!.paused === 1;

function getRun(db: Connection, id: string): RunRow | null {
  const sql = `SELECT ${SUMMARY}, ${MESSAGE} ${FROM_RUNS}
    JOIN messages ON messages.run = runs.seq LEFT JOIN graphs ON graphs.hash = messages.graph WHERE runs.id = ?`;
  return orNull(db.get(sql, id), toRun);
}

const getSummary = (db: Connection, id: string) =>
  orNull(db.get(`SELECT ${SUMMARY} ${FROM_RUNS} WHERE runs.id = ?`, id), toSummary);

export function startRun(db: Connection, id: string, startedAt: number, event: NewEvent): RunRow {
  db.run("UPDATE runs SET state = 'running', started_at = ? WHERE id = ?", startedAt, id);
  // the first event of a run trims nothing, unless it runs again
  addEvents(db, id, { ...NO_EVENTS, events: [event] });
  return getRun(db, id)!;
}

function requeueRun(db: Connection, id: string): boolean {
  const sql = "UPDATE runs SET state = 'queued', started_at = NULL, progress = NULL WHERE id = ? AND state = 'running'";
  return db.run(sql, id).changes > 0;
}

export function endRun(db: Connection, id: string, ending: Ending, batch: EventBatch, limits: EventLimits): boolean {
  const { from, to, finishedAt, endedMark, error, receivers = [] } = ending;
  const sql = `UPDATE runs SET state = ?, finished_at = ?, ended_mark = ?, error = ?, error_code = ?
    WHERE id = ? AND state IN (${from.map(() => "?").join(", ")})`;
  const own = [to, finishedAt, endedMark, error?.error ?? null, error?.code ?? null, id];
  if (db.run(sql, ...own, ...from).changes === 0) return false;
  addEvents(db, id, { ...batch, events: [...batch.events, ending.terminal] }, limits);
  countEnd(db, id);
  if (receivers.length > 0) addDeliveries(db, getSummary(db, id)!, ending);
  return true;
}

/** The runs in a state that an earlier process left. */
function readRuns(db: Connection, state: RunState): QueuedRun[] {
  const sql = `SELECT runs.seq, runs.id, sessions.key AS session_key, runs.origin, runs.priority, runs.due_mark,
      runs.deadline_mark, runs.created_at, runs.attempt ${FROM_RUNS}
    WHERE runs.state = ? AND runs.ended_mark IS NULL ORDER BY runs.seq`;
  return db.all(sql, state).map((row) => ({
    id: String(row.id),
    seq: Number(row.seq),
    sessionKey: String(row.session_key),
    origin: row.origin as RunOrigin,
    priority: Number(row.priority),
    dueMark: numberOrNull(row.due_mark),
    isDelayed: row.due_mark !== null,
    deadlineMark: numberOrNull(row.deadline_mark),
    // the steady time of the earlier process is gone
    readyMark: Math.max(Number(row.created_at), Number(row.due_mark ?? 0)),
    hasStarted: state === "running" || Number(row.attempt) > 1,
    token: 0,
    worker: null,
  }));
}
