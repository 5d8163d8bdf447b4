import type { RunSummary, TerminalState } from "../../run.js";
import {
  type Attempt,
  type Delivery,
  type DeliveryClaim,
  type DeliveryFilter,
  type DeliveryState,
  FORGOTTEN_MS,
  type HeldDelivery,
  receiversOf,
  type Settlement,
  withAttempt,
} from "../deliveries.js";
import type { Ending } from "../store.js";
import type { Connection, Transaction } from "./connection.js";
import { fromStored, type SqlRow, type SqlValue, toStored } from "./driver.js";

/** Adds the deliveries of a run that has ended. Those for an endpoint that is gone are dead at once. */
export async function addDeliveries(
  tx: Transaction,
  run: RunSummary,
  { receivers, endedMark }: Pick<Ending, "receivers" | "endedMark">,
): Promise<void> {
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

/** One statement. Deliveries that another process claims at this moment are left to it. */
export async function claimDeliveries(
  db: Pick<Connection, "query">,
  { endpoints, leaseMs }: DeliveryClaim,
): Promise<HeldDelivery[]> {
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
}

export async function settleDelivery(
  tx: Transaction,
  id: number,
  token: number,
  { state, attempt, retryMs = 0, isGone = false }: Settlement,
): Promise<boolean> {
  const locked = "SELECT * FROM lk.deliveries WHERE id = $1 AND token = $2 AND state = 'pending' FOR NO KEY UPDATE";
  const [row] = await tx.query(locked, id, token);
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
  if (state === "delivered")
    await tx.query("DELETE FROM lk.gone WHERE endpoint = $1 AND target = $2", endpoint, target);
  if (!isGone) return true;
  await tx.query("INSERT INTO lk.gone VALUES ($1, $2) ON CONFLICT DO NOTHING", endpoint, target);
  await tx.query(
    `UPDATE lk.deliveries SET state = 'dead', settled_mark = ${NOW_MARK} WHERE id IN (
       SELECT id FROM lk.deliveries WHERE endpoint = $1 AND target = $2 AND state = 'pending' ORDER BY id FOR UPDATE)`,
    endpoint,
    target,
  );
  return true;
}

export async function getDelivery(db: Pick<Connection, "query">, id: number): Promise<Delivery | null> {
  const [row] = await db.query("SELECT * FROM lk.deliveries WHERE id = $1", id);
  return row === undefined ? null : toDelivery(row);
}

export async function listDeliveries(
  db: Pick<Connection, "query">,
  before: number | null,
  limit: number,
  { endpoint, state, runId }: DeliveryFilter = {},
): Promise<Delivery[]> {
  const values: SqlValue[] = [limit];
  const conditions: string[] = [];
  const add = (condition: string, value: SqlValue | undefined) => {
    if (value !== undefined) conditions.push(condition.replace("?", `$${values.push(value)}`));
  };
  add("id < ?", before ?? undefined);
  add("endpoint = ?", endpoint && toStored(endpoint));
  add("state = ?", state);
  add("run_id = ?", runId && toStored(runId));
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return (await db.query(`SELECT * FROM lk.deliveries ${where} ORDER BY id DESC LIMIT $1`, ...values)).map(toDelivery);
}

export async function countPendingDeliveries(db: Connection, most: number): Promise<number> {
  const pending = "SELECT 1 FROM lk.deliveries WHERE state = 'pending' LIMIT $1";
  const [row] = await db.query(`SELECT count(*) AS n FROM (${pending}) AS pending`, most);
  return Number(row!.n);
}

export async function redeliver(db: Pick<Connection, "query">, id: number): Promise<Delivery | null> {
  const [row] = await db.query(
    `UPDATE lk.deliveries SET state = 'pending', settled_mark = NULL, due_mark = ${NOW_MARK}, since_mark = ${NOW_MARK}
     WHERE id = $1 RETURNING *`,
    id,
  );
  return row === undefined ? null : toDelivery(row);
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
  const inOrder = "SELECT settled_mark FROM lk.deliveries WHERE settled_mark IS NOT NULL ORDER BY settled_mark DESC";
  let removed = await remove(`settled_mark <= ${ago}`, retentionMs, budget);
  removed += await remove(`settled_mark <= (${inOrder} LIMIT 1 OFFSET $1)`, most, budget - removed);
  return (
    removed + (await remove(`state = 'pending' AND since_mark <= ${ago}`, retentionMs + FORGOTTEN_MS, budget - removed))
  );
}

const toDelivery = (row: SqlRow): Delivery => ({
  id: Number(row.id),
  endpoint: fromStored(row.endpoint),
  target: String(row.target),
  runId: fromStored(row.run_id),
  sessionKey: fromStored(row.session_key),
  runState: row.run_state as TerminalState,
  finishedAt: Number(row.finished_at),
  endedMark: Number(row.ended_mark),
  state: row.state as DeliveryState,
  attempts: JSON.parse(String(row.attempts)) as Attempt[],
});

/**
 * Ms of the server's clock at the start of the statement: the same for all processes. An index is searched for it, since
 * it does not change within the statement and has the type of the columns.
 */
const NOW_MARK = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";
