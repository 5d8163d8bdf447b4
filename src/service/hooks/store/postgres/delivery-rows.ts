import type { RunSummary } from "../../run.js";
import { FORGOTTEN_MS, type Outbox, receiversOf, withAttempt } from "../deliveries.js";
import type { Ending } from "../queue-store.js";
import { whereOf } from "../tables.js";
import type { Connection, Transaction } from "./connection.js";
import { markOf, type SqlValue, toStored } from "./driver.js";
import { firstOf, toDelivery } from "./event-rows.js";

/**
 * Ms of the server's clock at the start of the statement: the same for all processes. An index is searched for it, since
 * it does not change within the statement and has the type of the columns.
 */
const NOW_MARK = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/** The deliveries to webhooks. */
export const deliveryRows = (db: Connection): Outbox => ({
  /** One statement. Deliveries that another process claims at this moment are left to it. */
  async claimDeliveries({ endpoints, leaseMs }) {
    const rows = await db.query(
      `WITH chosen AS MATERIALIZED (
         SELECT due.id FROM unnest($1::text[], $2::integer[]) AS wanted (endpoint, count)
         CROSS JOIN LATERAL (
           SELECT id FROM lk.deliveries
           WHERE deliveries.endpoint = wanted.endpoint AND state = 'pending' AND due_mark <= ${NOW_MARK}
           ORDER BY due_mark, id LIMIT wanted.count FOR UPDATE SKIP LOCKED
         ) AS due
       ), before AS MATERIALIZED (
         SELECT deliveries.id, due_mark FROM lk.deliveries JOIN chosen ON chosen.id = deliveries.id
       ), held AS (
         UPDATE lk.deliveries SET token = token + 1, due_mark = ${NOW_MARK} + $3::bigint
         FROM chosen WHERE deliveries.id = chosen.id RETURNING deliveries.*
       )
       SELECT held.*, ${NOW_MARK} - since_mark AS age
       FROM held JOIN before ON before.id = held.id ORDER BY held.endpoint, before.due_mark, held.id`,
      endpoints.map(({ endpoint }) => endpoint),
      endpoints.map(({ count }) => count),
      leaseMs,
    );
    return rows.map((row) => ({ ...toDelivery(row), token: Number(row.token), ageMs: Number(row.age) }));
  },
  settleDelivery: (id, token, { state, attempt, retryMs = 0, isGone = false }) =>
    db.transaction(async (tx) => {
      const lock = "SELECT * FROM lk.deliveries WHERE id = $1 AND token = $2 AND state = 'pending' FOR NO KEY UPDATE";
      const [row] = await tx.query(lock, id, token);
      if (row === undefined) return false;
      const { attempts, endpoint, target } = toDelivery(row);
      await tx.query(
        `UPDATE lk.deliveries SET state = $2, attempts = $3, due_mark = ${NOW_MARK} + $4::bigint,
           settled_mark = CASE WHEN $2 = 'pending' THEN NULL ELSE ${NOW_MARK} END WHERE id = $1`,
        id,
        state,
        JSON.stringify(withAttempt(attempts, attempt)),
        Math.ceil(retryMs),
      );
      const forget = "DELETE FROM lk.gone WHERE endpoint = $1 AND target = $2";
      if (state === "delivered") await tx.query(forget, endpoint, target);
      if (!isGone) return true;
      await tx.query("INSERT INTO lk.gone VALUES ($1, $2) ON CONFLICT DO NOTHING", endpoint, target);
      await tx.query(
        `UPDATE lk.deliveries SET state = 'dead', settled_mark = ${NOW_MARK} WHERE id IN (
           SELECT id FROM lk.deliveries WHERE endpoint = $1 AND target = $2 AND state = 'pending' ORDER BY id FOR UPDATE)`,
        endpoint,
        target,
      );
      return true;
    }),
  getDelivery: async (id) => firstOf(await db.query("SELECT * FROM lk.deliveries WHERE id = $1", id), toDelivery),
  async listDeliveries(before, limit, { endpoint, state, runId } = {}) {
    const { where, values } = whereOf<SqlValue>(
      [
        ["id < ?", before ?? undefined],
        ["endpoint = ?", endpoint && toStored(endpoint)],
        ["state = ?", state],
        ["run_id = ?", runId && toStored(runId)],
      ],
      markOf,
    );
    const sql = `SELECT * FROM lk.deliveries ${where} ORDER BY id DESC LIMIT ${markOf(values.length + 1)}`;
    return (await db.query(sql, ...values, limit)).map(toDelivery);
  },
  async countPendingDeliveries(most) {
    const pending = "SELECT 1 FROM lk.deliveries WHERE state = 'pending' LIMIT $1";
    const [row] = await db.query(`SELECT count(*) AS n FROM (${pending}) AS pending`, most);
    return Number(row!.n);
  },
  async redeliver(id) {
    const set = `state = 'pending', settled_mark = NULL, due_mark = ${NOW_MARK}, since_mark = ${NOW_MARK}`;
    return firstOf(await db.query(`UPDATE lk.deliveries SET ${set} WHERE id = $1 RETURNING *`, id), toDelivery);
  },
});

/** Adds the deliveries of a run that has ended. Those for an endpoint that is gone are dead at once. */
export async function addDeliveries(tx: Transaction, run: RunSummary, { receivers, endedMark }: Ending): Promise<void> {
  const told = receiversOf(run, receivers);
  if (told.length === 0) return;
  await tx.query(
    `INSERT INTO lk.deliveries (endpoint, target, run_id, session_key, run_state, finished_at, ended_mark, state,
       due_mark, since_mark, settled_mark)
     SELECT receiver.endpoint, receiver.target, $3, $4, $5, $6, $7,
       CASE WHEN gone.endpoint IS NULL THEN 'pending' ELSE 'dead' END, ${NOW_MARK}, ${NOW_MARK},
       CASE WHEN gone.endpoint IS NULL THEN NULL ELSE ${NOW_MARK} END
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS receiver (endpoint, target, n)
     LEFT JOIN lk.gone ON gone.endpoint = receiver.endpoint AND gone.target = receiver.target ORDER BY receiver.n`,
    told.map(({ endpoint }) => endpoint),
    told.map(({ target }) => target),
    toStored(run.id),
    toStored(run.sessionKey),
    run.state,
    run.finishedAt,
    endedMark,
  );
}

/**
 * Deletes deliveries that ended `retentionMs` ago, those beyond the newest `most`, and forgotten ones; returns their
 * number.
 */
export async function sweepDeliveries(
  tx: Transaction,
  retentionMs: number,
  most: number,
  budget: number,
): Promise<number> {
  const remove = async (condition: string, value: number, count: number) => {
    const due = `SELECT id FROM lk.deliveries WHERE ${condition} LIMIT $2 FOR UPDATE SKIP LOCKED`;
    const sql = `DELETE FROM lk.deliveries WHERE id IN (${due}) RETURNING 1`;
    return (await tx.query(sql, value, Math.max(count, 0))).length;
  };
  const ago = `${NOW_MARK} - $1::bigint`;
  const isSettled = "settled_mark IS NOT NULL";
  const newest = `SELECT settled_mark, id FROM lk.deliveries WHERE ${isSettled} ORDER BY settled_mark DESC, id DESC`;
  let removed = await remove(`settled_mark <= ${ago}`, retentionMs, budget);
  // several may have ended in one millisecond
  const isSurplus = `${isSettled} AND (settled_mark, id) <= (${newest} LIMIT 1 OFFSET $1)`;
  removed += await remove(isSurplus, most, budget - removed);
  return (
    removed + (await remove(`state = 'pending' AND since_mark <= ${ago}`, retentionMs + FORGOTTEN_MS, budget - removed))
  );
}
