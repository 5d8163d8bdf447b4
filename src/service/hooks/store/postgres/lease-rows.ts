import type { Claim, HeldRun, LostRunPolicy, LostRuns } from "../queue-store.js";
import type { Connection, Transaction } from "./connection.js";
import { endRun, lockSessionOf, QUEUED, startRuns } from "./run-rows.js";
import { fromStored } from "./text.js";

const NOTHING = { skip: 0, events: [], files: [] };

// decisions 234, 236
/** Lets runs whose delay is over be claimed, from the next statement on. */
const PROMOTE = `promoted AS (
  UPDATE lk.runs SET delayed = false WHERE seq IN (
    SELECT seq FROM lk.runs WHERE delayed AND state = 'queued' AND due_mark <= $8::bigint
    ORDER BY due_mark LIMIT 1000 FOR UPDATE SKIP LOCKED
  ) RETURNING 1
),`;

/** Runs that another worker claims at this moment are left to it. */
export async function claim(db: Connection, { count, nowMark, takesBatches, ...start }: Claim): Promise<HeldRun[]> {
  const which = `SELECT seq FROM lk.runs WHERE active AND state = 'queued' AND NOT delayed
    AND NOT (SELECT paused FROM lk.queue) AND (deadline_mark IS NULL OR deadline_mark > $8::bigint)
    AND ($9::boolean OR origin <> 'batch') AND NOT EXISTS (SELECT 1 FROM lk.runs AS earlier
      WHERE earlier.session = runs.session AND earlier.state = 'queued' AND earlier.seq < runs.seq)
    ORDER BY priority DESC, seq LIMIT $1 FOR UPDATE SKIP LOCKED`;
  const statement = { ...start, which, alongside: PROMOTE, values: [nowMark, takesBatches] };
  const { held, promoted } = await startRuns(db, statement, count);
  return held.length === 0 && promoted > 0 ? (await startRuns(db, statement, count)).held : held;
}

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
