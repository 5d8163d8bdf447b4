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
import type { Connection } from "./connection.js";
import type { SqlRow, SqlValue } from "./driver.js";

/** Adds the deliveries of a run that has ended. Those for an endpoint that is gone are dead at once. */
export function addDeliveries(db: Connection, run: RunSummary, { receivers, endedMark }: Ending): void {
  for (const { endpoint, target } of receiversOf(run, receivers)) {
    const isGone =
      db.get("SELECT 1 AS yes FROM gone WHERE endpoint = ? AND target = ?", endpoint, target) !== undefined;
    db.run(
      `INSERT INTO deliveries (endpoint, target, run_id, session_key, run_state, finished_at, ended_mark, state,
         due_mark, since_mark, settled_mark) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      endpoint,
      target,
      run.id,
      run.sessionKey,
      run.state,
      run.finishedAt,
      endedMark,
      isGone ? "dead" : "pending",
      endedMark,
      endedMark,
      isGone ? endedMark : null,
    );
  }
}

/** Reads first: while nothing is due, nothing is written. */
export function claimDeliveries(db: Connection, { endpoints, leaseMs, nowMark }: DeliveryClaim): HeldDelivery[] {
  const due = db.read(() =>
    endpoints.flatMap(({ endpoint, count }) =>
      db.all(
        "SELECT * FROM deliveries WHERE endpoint = ? AND state = 'pending' AND due_mark <= ? ORDER BY due_mark, id LIMIT ?",
        endpoint,
        nowMark,
        count,
      ),
    ),
  );
  if (due.length === 0) return [];
  return db.write("trailing", () =>
    due.map((row) => {
      db.run("UPDATE deliveries SET token = token + 1, due_mark = ? WHERE id = ?", nowMark + leaseMs, row.id!);
      return { ...toDelivery(row), token: Number(row.token) + 1, ageMs: nowMark - Number(row.since_mark) };
    }),
  );
}

export function settleDelivery(
  db: Connection,
  id: number,
  token: number,
  { state, attempt, retryMs = 0, isGone = false, nowMark }: Settlement,
): boolean {
  const sql = "SELECT * FROM deliveries WHERE id = ? AND token = ? AND state = 'pending'";
  const row = db.get(sql, id, token);
  if (row === undefined) return false;
  const { attempts, endpoint, target } = toDelivery(row);
  const settledMark = state === "pending" ? null : nowMark;
  db.run(
    "UPDATE deliveries SET state = ?, attempts = ?, due_mark = ?, settled_mark = ? WHERE id = ?",
    state,
    JSON.stringify(withAttempt(attempts, attempt)),
    nowMark + retryMs,
    settledMark,
    id,
  );
  if (state === "delivered") db.run("DELETE FROM gone WHERE endpoint = ? AND target = ?", endpoint, target);
  if (!isGone) return true;
  db.run("INSERT OR IGNORE INTO gone VALUES (?, ?)", endpoint, target);
  db.run(
    "UPDATE deliveries SET state = 'dead', settled_mark = ? WHERE endpoint = ? AND target = ? AND state = 'pending'",
    nowMark,
    endpoint,
    target,
  );
  return true;
}

export function getDelivery(db: Connection, id: number): Delivery | null {
  const row = db.get("SELECT * FROM deliveries WHERE id = ?", id);
  return row === undefined ? null : toDelivery(row);
}

export function listDeliveries(
  db: Connection,
  before: number | null,
  limit: number,
  { endpoint, state, runId }: DeliveryFilter = {},
): Delivery[] {
  const conditions: [string, SqlValue | undefined][] = [
    ["id < ?", before ?? undefined],
    ["endpoint = ?", endpoint],
    ["state = ?", state],
    ["run_id = ?", runId],
  ];
  const given = conditions.filter(([, value]) => value !== undefined);
  const where = given.length === 0 ? "" : `WHERE ${given.map(([condition]) => condition).join(" AND ")}`;
  const values = given.map(([, value]) => value!);
  return db.all(`SELECT * FROM deliveries ${where} ORDER BY id DESC LIMIT ?`, ...values, limit).map(toDelivery);
}

export function countPendingDeliveries(db: Connection, most: number): number {
  const sql = "SELECT count(*) AS n FROM (SELECT 1 FROM deliveries WHERE state = 'pending' LIMIT ?)";
  return Number(db.get(sql, most)!.n);
}

export function redeliver(db: Connection, id: number, nowMark: number): Delivery | null {
  db.run(
    "UPDATE deliveries SET state = 'pending', settled_mark = NULL, due_mark = ?, since_mark = ? WHERE id = ?",
    nowMark,
    nowMark,
    id,
  );
  return getDelivery(db, id);
}

/** Deletes deliveries that ended by a mark, those beyond the newest `most`, and forgotten ones; returns their number. */
export function sweepDeliveries(db: Connection, endedBefore: number, most: number, budget: number): number {
  const remove = (condition: string, mark: number, count: number) =>
    db.run(
      `DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE ${condition} LIMIT ?)`,
      mark,
      Math.max(count, 0),
    ).changes;
  const inOrder = "SELECT settled_mark FROM deliveries WHERE settled_mark IS NOT NULL ORDER BY settled_mark DESC";
  const surplus = db.get(`${inOrder} LIMIT 1 OFFSET ?`, most)?.settled_mark;
  const ended = remove("settled_mark <= ?", Math.max(endedBefore, Number(surplus ?? endedBefore)), budget);
  return ended + remove("state = 'pending' AND since_mark <= ?", endedBefore - FORGOTTEN_MS, budget - ended);
}

const toDelivery = (row: SqlRow): Delivery => ({
  id: Number(row.id),
  endpoint: String(row.endpoint),
  target: String(row.target),
  runId: String(row.run_id),
  sessionKey: String(row.session_key),
  runState: row.run_state as TerminalState,
  finishedAt: Number(row.finished_at),
  endedMark: Number(row.ended_mark),
  state: row.state as DeliveryState,
  attempts: JSON.parse(String(row.attempts)) as Attempt[],
});
