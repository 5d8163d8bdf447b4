import type { SweepRequest, SweepResult } from "../store.js";
import type { Transaction } from "./connection.js";
import { sweepDeliveries } from "./delivery-rows.js";
import { type SqlRow, toStored } from "./driver.js";
import { leaveGroups } from "./group-rows.js";
import { removeMessages } from "./inbox.js";
import { SWEEP_LOCKS } from "./schema.js";

/** Runs that are removed by one statement. */
const BATCH = 200;

/**
 * Deletes runs and replies that have outlived their retention, at most about `budget` rows. While another process does,
 * it deletes nothing.
 */
export async function sweep(tx: Transaction, request: SweepRequest, schema: string): Promise<SweepResult> {
  const [lock] = await tx.query("SELECT pg_try_advisory_xact_lock($1, hashtext($2)) AS held", SWEEP_LOCKS, schema);
  const [counted] = await tx.query("SELECT count(*) AS n FROM lk.runs WHERE ended_mark IS NOT NULL");
  const ended = Number(counted!.n);
  if (lock!.held !== true) return { removedRuns: 0, endedRuns: ended, more: false };
  let { budget } = request;
  let removedRuns = 0;
  for (let isDone = false; !isDone && budget > 0; ) {
    const rows = await oldest(tx);
    const due: SqlRow[] = [];
    for (const row of rows) {
      const isOld = Number(row.ended_mark) <= request.endedBefore;
      if (budget <= 0 || !(isOld || ended - removedRuns > request.maxEndedRuns)) break;
      // its own row, its message, its events and its files
      budget -= 2 + Number(row.events) + Number(row.file_count);
      removedRuns += 1;
      due.push(row);
    }
    await removeRuns(tx, due);
    isDone = due.length < BATCH;
  }
  const { nowMark, endedBefore, maxEndedDeliveries } = request;
  if (budget > 0) budget -= await sweepDeliveries(tx, nowMark - endedBefore, maxEndedDeliveries, budget);
  const expired = await tx.query(
    "DELETE FROM lk.replies WHERE scope IN (SELECT scope FROM lk.replies WHERE expires_mark <= $1 LIMIT $2) RETURNING 1",
    request.nowMark,
    Math.max(budget, 1),
  );
  return { removedRuns, endedRuns: ended - removedRuns, more: budget - expired.length <= 0 };
}

/** Removes runs that have ended, by their ids. */
export async function removeEnded(tx: Transaction, ids: readonly string[]): Promise<void> {
  const sql = "SELECT seq, session FROM lk.runs WHERE id = ANY($1) AND ended_mark IS NOT NULL ORDER BY seq FOR UPDATE";
  await removeRuns(tx, await tx.query(sql, ids.map(toStored)));
}

const oldest = (tx: Transaction): Promise<SqlRow[]> =>
  tx.query(
    `SELECT seq, session, ended_mark, file_count, last_event_id - oldest_event_id + 1 AS events FROM lk.runs
     WHERE ended_mark IS NOT NULL ORDER BY ended_mark, seq LIMIT $1`,
    BATCH,
  );

async function removeRuns(tx: Transaction, rows: readonly SqlRow[]): Promise<void> {
  if (rows.length === 0) return;
  const seqs = rows.map(({ seq }) => seq!);
  await removeMessages(tx, seqs);
  await leaveGroups(tx, seqs);
  for (const table of ["events", "files", "tags"]) {
    await tx.query(`DELETE FROM lk.${table} WHERE run = ANY($1)`, seqs);
  }
  await tx.query("DELETE FROM lk.runs WHERE seq = ANY($1)", seqs);
  // the counts are those of the newest version of the row: a run that was created meanwhile keeps its session
  const sessions = rows.map(({ session }) => session!);
  await tx.query(
    `UPDATE lk.sessions SET runs = runs - gone.n
     FROM (SELECT id, count(*) AS n FROM unnest($1::bigint[]) AS id GROUP BY id) AS gone WHERE sessions.id = gone.id`,
    sessions,
  );
  await tx.query("DELETE FROM lk.sessions WHERE id = ANY($1) AND runs = 0 AND wakes = 0", sessions);
}
