import { type HeldRun, type LostRunPolicy, NO_EVENTS, type QueueStore } from "../queue-store.js";
import type { SharedStore } from "../store.js";
import { numberOrNull, TURN } from "../tables.js";
import type { Connection, Transaction } from "./connection.js";
import { fromStored, toStored } from "./driver.js";
import { endRun, lockSessionOf, QUEUED, startRuns } from "./run-rows.js";

// Claims read only the runs marked `active`, as many of a session as may run at once: 100,000 queued runs cost as much
// as ten.
// decisions: A run belongs to its worker by lease and token
/** Lets runs whose delay is over be claimed, from the next statement on. */
const PROMOTE = `promoted AS (
  UPDATE lk.runs SET delayed = false WHERE seq IN (
    SELECT seq FROM lk.runs WHERE delayed AND state = 'queued' AND due_mark <= $8::bigint
    ORDER BY due_mark LIMIT 1000 FOR UPDATE SKIP LOCKED
  ) RETURNING 1
),`;

/**
 * The queue of runs. Those of a batch come after all others, and wait as long as it takes: they are left out of counts and
 * of expiry. `tell`: called with each run that has changed.
 */
export const queueRows = (
  db: Connection,
  tell: (id: string) => void,
): Omit<QueueStore, "release"> & Pick<SharedStore, "renew" | "revisions" | "now"> => ({
  openQueue: (perSession) =>
    db.transaction(async (tx) => {
      const set = "UPDATE lk.queue SET per_session = $1 WHERE per_session <> $1 RETURNING 1";
      if ((await tx.query(set, perSession)).length > 0) {
        await tx.query(
          `UPDATE lk.runs SET active = (
             SELECT count(*) FROM lk.runs AS earlier
             WHERE earlier.session = runs.session AND earlier.ended_mark IS NULL
               AND (earlier.state = 'running' OR ${TURN("earlier")} < ${TURN("runs")})
           ) < $1 WHERE state = 'queued'`,
          perSession,
        );
      }
      const [row] = await tx.query("SELECT max(ended_mark) AS mark FROM lk.runs WHERE ended_mark IS NOT NULL");
      return Number(row!.mark ?? 0);
    }),
  isPaused: async () => (await db.query("SELECT paused FROM lk.queue"))[0]!.paused === true,
  async setPaused(isPaused) {
    await db.query("UPDATE lk.queue SET paused = $1", isPaused);
  },
  /** Counts up to a bound: it takes as long with 100,000 runs queued as with the bound. */
  async countRuns(most) {
    const [row] = await db.query(
      `SELECT (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE state = 'queued' AND origin <> 'batch' LIMIT $1) AS first) AS queued,
         (SELECT count(*) FROM (SELECT 1 FROM lk.runs WHERE state = 'running' LIMIT $1) AS first) AS running,
         (SELECT max(seq) FROM lk.runs) AS newest`,
      most,
    );
    return { queued: Number(row!.queued), running: Number(row!.running), newest: Number(row!.newest) };
  },
  async positionOf(id, most) {
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
  },
  async nextMarks(afterMark) {
    const [row] = await db.query(
      `SELECT (SELECT min(due_mark) FROM lk.runs WHERE delayed AND state = 'queued' AND due_mark > $1) AS due,
         (SELECT min(deadline_mark) FROM lk.runs WHERE deadline_mark IS NOT NULL AND state = 'queued') AS deadline,
         (SELECT greatest(created_at, due_mark) AS ready FROM lk.runs
           WHERE state = 'queued' AND token = 0 AND origin <> 'batch' ORDER BY ready LIMIT 1) AS ready`,
      afterMark,
    );
    return {
      due: numberOrNull(row!.due),
      deadline: numberOrNull(row!.deadline),
      ready: numberOrNull(row!.ready),
    };
  },
  /** One that was started before waits for as long as it takes. */
  async overdue(readyBefore, count) {
    const sql = `SELECT id FROM lk.runs
      WHERE state = 'queued' AND token = 0 AND origin <> 'batch' AND greatest(created_at, due_mark) <= $1
      ORDER BY greatest(created_at, due_mark) LIMIT $2`;
    return (await db.query(sql, readyBefore, count)).map(({ id }) => fromStored(id));
  },
  async pastDeadline(nowMark, count) {
    const sql = `SELECT id, deadline_mark FROM lk.runs WHERE state = 'queued' AND deadline_mark <= $1
      ORDER BY deadline_mark LIMIT $2`;
    const rows = await db.query(sql, nowMark, count);
    return rows.map((row) => ({ id: fromStored(row.id), deadlineMark: Number(row.deadline_mark) }));
  },
  async revisions(ids) {
    if (ids.length === 0) return new Map();
    const sql = `SELECT id, last_event_id || state AS revision FROM lk.runs WHERE id = ANY($1)
      UNION ALL SELECT id, ended::text FROM lk.run_groups WHERE id = ANY($1)`;
    const rows = await db.query(sql, ids.map(toStored));
    return new Map(rows.map(({ id, revision }) => [fromStored(id), String(revision)]));
  },
  async now() {
    const [row] = await db.query("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now");
    return Number(row!.now);
  },
  /** Runs that another worker claims at this moment are left to it. */
  async claim({ count, nowMark, takesBatches, ...start }) {
    const which = `SELECT seq FROM lk.runs WHERE active AND state = 'queued' AND NOT delayed
      AND NOT (SELECT paused FROM lk.queue) AND (deadline_mark IS NULL OR deadline_mark > $8::bigint)
      AND ($9::boolean OR origin <> 'batch') AND NOT EXISTS (SELECT 1 FROM lk.runs AS earlier
        WHERE earlier.session = runs.session AND earlier.active AND earlier.state = 'queued'
        AND ${TURN("earlier")} < ${TURN("runs")})
      ORDER BY priority DESC, seq LIMIT $1 FOR UPDATE SKIP LOCKED`;
    const statement = { ...start, which, alongside: PROMOTE, values: [nowMark, takesBatches] };
    const held: HeldRun[] = [];
    for (let hasMore = true; hasMore && held.length < count; ) {
      const started = await startRuns(db, statement, count - held.length);
      held.push(...started.held);
      hasMore = started.hasMore;
    }
    for (const { run } of held) tell(run.id);
    return held;
  },
  /** Extends a lease that has ended too, unless another worker has taken the run. */
  async renew(worker, leaseMs) {
    const sql = `UPDATE lk.runs SET lease_until = clock_timestamp() + $2 * interval '1 ms'
      WHERE worker = $1 AND state = 'running' RETURNING id, token`;
    return (await db.query(sql, worker, leaseMs)).map((row) => ({ id: fromStored(row.id), token: Number(row.token) }));
  },
  /** Each run is a transaction: a lease that is renewed meanwhile stays. */
  async recoverLost(policy) {
    const lost = await db.query(
      "SELECT id, token, losses FROM lk.runs WHERE state = 'running' AND lease_until < clock_timestamp() ORDER BY seq LIMIT $1",
      policy.count,
    );
    const recovered = { requeued: [] as string[], ended: [] as string[] };
    for (const { id, token, losses } of lost) {
      const isLast = Number(losses) >= policy.requeues;
      const fate = await db.transaction((tx) => recover(tx, String(id), Number(token), isLast, policy));
      if (fate === null) continue;
      recovered[fate].push(fromStored(id));
      tell(fromStored(id));
    }
    return recovered;
  },
});

/** Null if the run is not lost any more. */
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
  return (await endRun(tx, fromStored(id), { ...ending, from: ["running"] }, NO_EVENTS, limits)) ? "ended" : null;
}
