import type { SweepRequest, SweepResult } from "../store.js";
import type { Connection } from "./connection.js";
import { sweepDeliveries } from "./delivery-rows.js";
import { removeMessage } from "./graph-rows.js";
import { leaveGroup } from "./group-rows.js";

/** Deletes runs and replies that have outlived their retention, at most about `budget` rows. */
export function sweep(db: Connection, request: SweepRequest): SweepResult {
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
