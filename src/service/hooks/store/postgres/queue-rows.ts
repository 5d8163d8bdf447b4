import type { RunCounts } from "../leases.js";
import type { Connection } from "./connection.js";
import { fromStored, toStored } from "./text.js";

// runs of a batch come after all others, and wait as long as it takes: they are left out of counts and of expiry

/** Counts up to a bound: it takes as long with 100,000 runs queued as with the bound. */
export async function countRuns(db: Connection, most: number): Promise<RunCounts> {
  const [row] = await db.query(
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE state = 'queued' AND origin <> 'batch' LIMIT $1) AS first) AS queued,
       (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE state = 'running' LIMIT $1) AS first) AS running,
       (SELECT max(seq) FROM lk.runs) AS newest,
       (SELECT greatest(created_at, due_mark) AS since FROM lk.runs
         WHERE state = 'queued' AND token = 0 AND origin <> 'batch' ORDER BY since LIMIT 1) AS oldest_queued_at`,
    most,
  );
  const { oldest_queued_at: oldest } = row!;
  return {
    queued: Number(row!.queued),
    running: Number(row!.running),
    newest: Number(row!.newest),
    oldestQueuedAt: oldest === null ? null : Number(oldest),
  };
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
export async function overdue(db: Connection, dueBefore: number, count: number): Promise<string[]> {
  const sql = `SELECT id FROM lk.runs
    WHERE state = 'queued' AND token = 0 AND origin <> 'batch' AND greatest(created_at, due_mark) <= $1
    ORDER BY greatest(created_at, due_mark) LIMIT $2`;
  return (await db.query(sql, dueBefore, count)).map(({ id }) => fromStored(id));
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
