import type { Claim, HeldRun, LostRunPolicy, LostRuns } from "../leases.js";
import type { Connection, Transaction } from "./connection.js";
import { endRun, lockSessionOf, QUEUED, startRuns } from "./run-rows.js";
import { NOW_MARK } from "./server-clock.js";
import { fromStored } from "./text.js";

const NOTHING = { skip: 0, events: [], files: [] };

// decisions 234, 236
/** Lets runs whose delay is over be claimed, from the next claim on. */
const PROMOTE = `promoted AS (
  UPDATE lk.runs SET delayed = false WHERE seq IN (
    SELECT seq FROM lk.runs WHERE delayed AND state = 'queued' AND due_mark <= ${NOW_MARK}
    ORDER BY due_mark LIMIT 1000 FOR UPDATE SKIP LOCKED
  )
),`;

/** One statement. Runs that another worker claims at this moment are left to it. */
export const claim = (db: Connection, { count, ...start }: Claim): Promise<HeldRun[]> => {
  const which = `SELECT seq FROM lk.runs WHERE active AND state = 'queued' AND NOT delayed
    AND NOT (SELECT paused FROM lk.queue)
    ORDER BY priority DESC, seq LIMIT $1 FOR UPDATE SKIP LOCKED`;
  return startRuns(db, { ...start, which, alongside: PROMOTE, value: count });
};

/** A lease that has ended is extended too where nobody has taken the run: the worker still holds it. */
export async function renew(
  db: Connection,
  worker: string,
  leaseMs: number,
): Promise<{ readonly id: string; readonly token: number }[]> {
  const sql = `UPDATE lk.runs SET lease_until = clock_timestamp() + $2 * interval '1 ms'
    WHERE worker = $1 AND state = 'running' RETURNING id, token`;
  return (await db.query(sql, worker, leaseMs)).map((row) => ({ id: fromStored(row.id), token: Number(row.token) }));
}

/** Each run is a transaction: a lease that is renewed meanwhile stays. */
export async function recoverLost(db: Connection, policy: LostRunPolicy): Promise<LostRuns> {
  const lost = await db.query(
    "SELECT id, token, losses FROM lk.runs WHERE state = 'running' AND lease_until < clock_timestamp() ORDER BY seq LIMIT $1",
    policy.count,
  );
  const requeued: string[] = [];
  const ended: string[] = [];
  for (const { id, token, losses } of lost) {
    const isLast = Number(losses) >= policy.requeues;
    const result = await db.transaction((tx) => recover(tx, String(id), Number(token), isLast, policy));
    if (result !== null) (result === "requeued" ? requeued : ended).push(fromStored(id));
  }
  return { requeued, ended };
}

/** Null where the run is not lost any more. */
async function recover(
  tx: Transaction,
  id: string,
  token: number,
  isLast: boolean,
  { ending, limits }: LostRunPolicy,
): Promise<"ended" | "requeued" | null> {
  await lockSessionOf(tx, id);
  const isTaken = await tx.query(
    `UPDATE lk.runs SET losses = losses + 1${isLast ? "" : `, ${QUEUED}`}
     WHERE id = $1 AND token = $2 AND state = 'running' AND lease_until < clock_timestamp() RETURNING seq`,
    id,
    token,
  );
  if (isTaken.length === 0) return null;
  if (!isLast) return "requeued";
  return (await endRun(tx, fromStored(id), { ...ending, from: ["running"] }, NOTHING, limits)) ? "ended" : null;
}
