import type { RunOrigin, RunState } from "../../run.js";
import type { LocalQueue, QueuedRun } from "../local-queue.js";
import type { Claim, HeldRun, LostRunPolicy, LostRuns } from "../queue-store.js";
import type { EventBatch } from "../store.js";
import type { Connection } from "./connection.js";
import { endRun, FROM_RUNS, orNull, requeueRun, startRun } from "./run-rows.js";

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
