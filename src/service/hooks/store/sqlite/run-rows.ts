import type { RunFilter, RunOrigin, RunProgress, RunRow, RunState, RunSummary, StoredStatus } from "../../run.js";
import type { LocalQueue, QueuedRun } from "../local-queue.js";
import type { Claim, HeldRun, LostRunPolicy, LostRuns } from "../queue-store.js";
import type { Ending, EventBatch, EventLimits, NewEvent, NextAttempt } from "../store.js";
import type { Connection } from "./connection.js";
import { addDeliveries } from "./delivery-rows.js";
import type { SqlRow, SqlValue } from "./driver.js";
import { addEvents, listFiles, terminalEvent } from "./event-rows.js";
import { countEnd, GRAPH, JOIN_GRAPHS, toGraph } from "./inbox.js";

const SUMMARY = `runs.seq, runs.id, sessions.key AS session_key, runs.session, runs.origin, runs.name, runs.state,
  runs.priority, runs.due_mark, runs.deadline_mark, runs.tags, runs.attempt, runs.timeout_seconds, runs.created_at,
  runs.started_at, runs.finished_at, runs.oldest_event_id, runs.last_event_id, runs.error, runs.error_code`;
export const FROM_RUNS = "FROM runs JOIN sessions ON sessions.id = runs.session";

export function getRun(db: Connection, id: string): RunRow | null {
  const sql = `SELECT ${SUMMARY}, messages.message, ${GRAPH} ${FROM_RUNS}
    JOIN messages ON messages.run = runs.seq ${JOIN_GRAPHS} WHERE runs.id = ?`;
  const row = db.get(sql, id);
  if (row === undefined) return null;
  const message = JSON.parse(String(row.message)) as string;
  const traceparent = row.traceparent as string | null;
  const promptFacts = row.prompt_facts as string | null;
  return { ...toSummary(row), message, graph: toGraph(row), traceparent, promptFacts };
}

export function getSummary(db: Connection, id: string): RunSummary | null {
  const row = db.get(`SELECT ${SUMMARY} ${FROM_RUNS} WHERE runs.id = ?`, id);
  return row === undefined ? null : toSummary(row);
}

export function getStatus(db: Connection, id: string, maxFiles: number): StoredStatus | null {
  const row = db.get(`SELECT ${SUMMARY}, runs.progress, runs.file_count ${FROM_RUNS} WHERE runs.id = ?`, id);
  if (row === undefined) return null;
  return {
    ...toSummary(row),
    progress: row.progress === null ? null : (JSON.parse(String(row.progress)) as RunProgress),
    files: listFiles(db, Number(row.seq), maxFiles),
    fileCount: Number(row.file_count),
    terminal: terminalEvent(db, id),
  };
}

export function listRuns(
  db: Connection,
  before: number | null,
  limit: number,
  { state, sessionKey, tag }: RunFilter = {},
): RunSummary[] {
  const session = sessionKey === undefined ? undefined : db.get("SELECT id FROM sessions WHERE key = ?", sessionKey);
  if (sessionKey !== undefined && session === undefined) return [];
  const seq = tag === undefined ? "runs.seq" : "tags.run";
  const conditions: [string, SqlValue | undefined][] = [
    ["tags.tag = ?", tag],
    ["runs.session = ?", session?.id],
    ["runs.state = ?", state],
    [`${seq} < ?`, before ?? undefined],
  ];
  const used = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
  const where = used.length === 0 ? "" : `WHERE ${used.map(([sql]) => sql).join(" AND ")}`;
  // a cross join is done from left to right: from the tag's runs, in order
  const from = tag === undefined ? FROM_RUNS : FROM_RUNS.replace("runs", "tags CROSS JOIN runs ON runs.seq = tags.run");
  const sql = `SELECT ${SUMMARY} ${from} ${where} ORDER BY ${seq} DESC LIMIT ?`;
  return db.all(sql, ...used.map(([, value]) => value), limit).map(toSummary);
}

export function startRun(db: Connection, id: string, startedAt: number, event: NewEvent): RunRow {
  db.run("UPDATE runs SET state = 'running', started_at = ? WHERE id = ?", startedAt, id);
  // the first event of a run trims nothing, unless it runs again
  addEvents(db, id, { skip: 0, events: [event], files: [] });
  return getRun(db, id)!;
}

export function requeueRun(db: Connection, id: string): boolean {
  const sql = "UPDATE runs SET state = 'queued', started_at = NULL, progress = NULL WHERE id = ? AND state = 'running'";
  return db.run(sql, id).changes > 0;
}

export function retryRun(
  db: Connection,
  id: string,
  { dueMark, event }: NextAttempt,
  batch: EventBatch,
  limits: EventLimits,
): boolean {
  const run = db.get("SELECT seq FROM runs WHERE id = ? AND state = 'running'", id);
  if (run === undefined) return false;
  addEvents(db, id, { ...batch, files: [], events: [...batch.events, event] }, limits);
  const seq = Number(run.seq);
  db.run("DELETE FROM files WHERE run = ?", seq);
  db.run(
    `UPDATE runs SET state = 'queued', started_at = NULL, progress = NULL, file_count = 0, due_mark = ?,
       attempt = attempt + 1 WHERE seq = ?`,
    dueMark,
    seq,
  );
  return true;
}

export function endRun(db: Connection, id: string, ending: Ending, batch: EventBatch, limits: EventLimits): boolean {
  const states = ending.from.map(() => "?").join(", ");
  const { changes } = db.run(
    `UPDATE runs SET state = ?, finished_at = ?, ended_mark = ?, error = ?, error_code = ?
     WHERE id = ? AND state IN (${states})`,
    ending.to,
    ending.finishedAt,
    ending.endedMark,
    ending.error?.error ?? null,
    ending.error?.code ?? null,
    id,
    ...ending.from,
  );
  if (changes === 0) return false;
  addEvents(db, id, { ...batch, events: [...batch.events, ending.terminal] }, limits);
  countEnd(db, id);
  if (ending.receivers !== undefined && ending.receivers.length > 0) addDeliveries(db, getSummary(db, id)!, ending);
  return true;
}

function toSummary(row: SqlRow): RunSummary {
  return {
    id: String(row.id),
    seq: Number(row.seq),
    sessionKey: String(row.session_key),
    chatId: Number(row.session),
    origin: row.origin as RunOrigin,
    name: row.name === null ? null : (JSON.parse(String(row.name)) as string),
    state: row.state as RunState,
    priority: Number(row.priority),
    dueMark: orNull(row.due_mark),
    deadlineMark: orNull(row.deadline_mark),
    tags: row.tags === null ? [] : (JSON.parse(String(row.tags)) as string[]),
    attempt: Number(row.attempt),
    timeoutSeconds: Number(row.timeout_seconds),
    createdAt: Number(row.created_at),
    startedAt: orNull(row.started_at),
    finishedAt: orNull(row.finished_at),
    oldestEventId: Number(row.oldest_event_id),
    lastEventId: Number(row.last_event_id),
    error: row.error === null ? null : { error: String(row.error), code: String(row.error_code) },
  };
}

export const orNull = (value: unknown) => (value === null ? null : Number(value));

const NO_EVENTS: EventBatch = { skip: 0, events: [], files: [] };

/** Reads the runs that an earlier process left. Returns the newest mark of an ended run, else 0. */
export function openQueue(db: Connection, queue: LocalQueue, perSession: number): number {
  queue.open(perSession, readRuns(db, "queued"), readRuns(db, "running"));
  queue.isPaused = db.get("SELECT paused FROM queue")!.paused === 1;
  return Number(db.get("SELECT max(ended_mark) AS mark FROM runs WHERE ended_mark IS NOT NULL")!.mark ?? 0);
}

/** Starts the runs that the queue has next. Where they cannot be stored, they are back in their places. */
export function startTaken(db: Connection, queue: LocalQueue, { startedAt, event, ...claim }: Claim): HeldRun[] {
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
}

export function recoverLost(
  db: Connection,
  queue: LocalQueue,
  { worker, requeues, ending, limits, count }: LostRunPolicy,
): LostRuns {
  const lost = queue.lostTo(worker, count).map(({ id }) => id);
  if (lost.length === 0) return { requeued: [], ended: [] };
  db.write("durable", () => {
    for (const id of lost) {
      if (requeues > 0) requeueRun(db, id);
      else endRun(db, id, { ...ending, from: ["running"] }, NO_EVENTS, limits);
    }
  });
  for (const id of lost) {
    if (requeues > 0) queue.putBack(id);
    else queue.end(id);
  }
  return requeues > 0 ? { requeued: lost, ended: [] } : { requeued: [], ended: lost };
}

function readRuns(db: Connection, state: RunState): QueuedRun[] {
  const rows = db.all(
    `SELECT runs.seq, runs.id, sessions.key AS session_key, runs.origin, runs.priority, runs.due_mark,
       runs.deadline_mark, runs.created_at, runs.attempt ${FROM_RUNS}
     WHERE runs.state = ? AND runs.ended_mark IS NULL ORDER BY runs.seq`,
    state,
  );
  return rows.map((row) => ({
    id: String(row.id),
    seq: Number(row.seq),
    sessionKey: String(row.session_key),
    origin: row.origin as RunOrigin,
    priority: Number(row.priority),
    dueMark: orNull(row.due_mark),
    deadlineMark: orNull(row.deadline_mark),
    // the steady time of the earlier process is gone
    readyMark: Math.max(Number(row.created_at), Number(row.due_mark ?? 0)),
    hasStarted: state === "running" || Number(row.attempt) > 1,
    token: 0,
    worker: null,
  }));
}
