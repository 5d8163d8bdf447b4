import type { NextMarks, RunCounts } from "../queue-store.js";
import type { Connection, Transaction } from "./connection.js";
import { fromStored, toStored } from "./text.js";

// runs of a batch come after all others, and wait as long as it takes: they are left out of counts and of expiry

/** Counts up to a bound: it takes as long with 100,000 runs queued as with the bound. */
export async function countRuns(db: Connection, most: number): Promise<RunCounts> {
  const [row] = await db.query(
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE state = 'queued' AND origin <> 'batch' LIMIT $1) AS first) AS queued,
       (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE state = 'running' LIMIT $1) AS first) AS running,
       (SELECT max(seq) FROM lk.runs) AS newest`,
    most,
  );
  return { queued: Number(row!.queued), running: Number(row!.running), newest: Number(row!.newest) };
}

export async function nextMarks(db: Connection, afterMark: number): Promise<NextMarks> {
  const [row] = await db.query(
    `SELECT (SELECT min(due_mark) FROM lk.runs WHERE delayed AND state = 'queued' AND due_mark > $1) AS due,
       (SELECT min(deadline_mark) FROM lk.runs WHERE deadline_mark IS NOT NULL AND state = 'queued') AS deadline,
       (SELECT greatest(created_at, due_mark) AS ready FROM lk.runs
         WHERE state = 'queued' AND token = 0 AND origin <> 'batch' ORDER BY ready LIMIT 1) AS ready`,
    afterMark,
  );
  const orNull = (value: unknown) => (value === null ? null : Number(value));
  return { due: orNull(row!.due), deadline: orNull(row!.deadline), ready: orNull(row!.ready) };
}

/** Sets the number of runs of a session that may be claimed. Returns the newest mark of an ended run, else 0. */
export async function openQueue(tx: Transaction, perSession: number): Promise<number> {
  const changed = await tx.query(
    "UPDATE lk.queue SET per_session = $1 WHERE per_session <> $1 RETURNING 1",
    perSession,
  );
  if (changed.length > 0) {
    await tx.query(
      `UPDATE lk.runs SET active = (
         SELECT count(*) FROM lk.runs AS earlier
         WHERE earlier.session = runs.session AND earlier.ended_mark IS NULL AND earlier.seq < runs.seq
       ) < $1 WHERE state = 'queued'`,
      perSession,
    );
  }
  const [row] = await tx.query("SELECT max(ended_mark) AS mark FROM lk.runs WHERE ended_mark IS NOT NULL");
  return Number(row!.mark ?? 0);
}

export async function isPaused(db: Connection): Promise<boolean> {
  const [row] = await db.query("SELECT paused FROM lk.queue");
  return row!.paused === true;
}

export async function setPaused(db: Connection, isPaused: boolean): Promise<void> {
  await db.query("UPDATE lk.queue SET paused = $1", isPaused);
}

export async function positionOf(db: Connection, id: string, most: number): Promise<number> {
  const [row] = await db.query(
    `SELECT count(*) AS n FROM (
       SELECT 1 FROM lk.runs, (SELECT seq, priority FROM lk.runs WHERE id = $1) AS own
       WHERE state = 'queued' AND (runs.priority > own.priority OR (runs.priority = own.priority AND runs.seq < own.seq))
       LIMIT $2
     ) AS ahead`,
    toStored(id),
    most,
  );
  return Number(row!.n) + 1;
}

/** One that was started before waits for as long as it takes. */
export async function overdue(db: Connection, readyBefore: number, count: number): Promise<string[]> {
  const sql = `SELECT id FROM lk.runs
    WHERE state = 'queued' AND token = 0 AND origin <> 'batch' AND greatest(created_at, due_mark) <= $1
    ORDER BY greatest(created_at, due_mark) LIMIT $2`;
  return (await db.query(sql, readyBefore, count)).map(({ id }) => fromStored(id));
}

export async function pastDeadline(
  db: Connection,
  nowMark: number,
  count: number,
): Promise<{ readonly id: string; readonly deadlineMark: number }[]> {
  const sql = `SELECT id, deadline_mark FROM lk.runs WHERE state = 'queued' AND deadline_mark <= $1
    ORDER BY deadline_mark LIMIT $2`;
  const rows = await db.query(sql, nowMark, count);
  return rows.map((row) => ({ id: fromStored(row.id), deadlineMark: Number(row.deadline_mark) }));
}

export async function revisions(db: Connection, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const sql = `SELECT id, last_event_id || state AS revision FROM lk.runs WHERE id = ANY($1)
    UNION ALL SELECT id, ended::text FROM lk.run_groups WHERE id = ANY($1)`;
  const rows = await db.query(sql, ids.map(toStored));
  return new Map(rows.map(({ id, revision }) => [fromStored(id), String(revision)]));
}

/** Wall clock of the server in ms. */
export async function now(db: Connection): Promise<number> {
  const [row] = await db.query("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now");
  return Number(row!.now);
}
