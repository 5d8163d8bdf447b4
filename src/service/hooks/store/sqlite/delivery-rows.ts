import type { RunSummary } from "../../run.js";
import { FORGOTTEN_MS, type Outbox, receiversOf, withAttempt } from "../deliveries.js";
import type { Ending } from "../queue-store.js";
import { whereOf } from "../tables.js";
import type { Connection } from "./connection.js";
import type { SqlValue } from "./driver.js";
import { orNull, toDelivery } from "./event-rows.js";

/** The deliveries to webhooks. */
export function deliveryRows(db: Connection): Outbox {
  const find = (id: number) => orNull(db.get("SELECT * FROM deliveries WHERE id = ?", id), toDelivery);
  return {
    /** Reads first: while nothing is due, nothing is written. */
    async claimDeliveries({ endpoints, leaseMs, nowMark }) {
      const sql = `SELECT * FROM deliveries WHERE endpoint = ? AND state = 'pending' AND due_mark <= ?
        ORDER BY due_mark, id LIMIT ?`;
      const due = db.read(() => endpoints.flatMap(({ endpoint, count }) => db.all(sql, endpoint, nowMark, count)));
      if (due.length === 0) return [];
      return db.write("trailing", () =>
        due.map((row) => {
          db.run("UPDATE deliveries SET token = token + 1, due_mark = ? WHERE id = ?", nowMark + leaseMs, row.id!);
          return { ...toDelivery(row), token: Number(row.token) + 1, ageMs: nowMark - Number(row.since_mark) };
        }),
      );
    },
    settleDelivery: async (id, token, { state, attempt, retryMs = 0, isGone = false, nowMark }) =>
      db.write("trailing", () => {
        const row = db.get("SELECT * FROM deliveries WHERE id = ? AND token = ? AND state = 'pending'", id, token);
        if (row === undefined) return false;
        const { attempts, endpoint, target } = toDelivery(row);
        db.run(
          "UPDATE deliveries SET state = ?, attempts = ?, due_mark = ?, settled_mark = ? WHERE id = ?",
          state,
          JSON.stringify(withAttempt(attempts, attempt)),
          nowMark + retryMs,
          state === "pending" ? null : nowMark,
          id,
        );
        if (state === "delivered") db.run("DELETE FROM gone WHERE endpoint = ? AND target = ?", endpoint, target);
        if (!isGone) return true;
        db.run("INSERT OR IGNORE INTO gone VALUES (?, ?)", endpoint, target);
        const sql = `UPDATE deliveries SET state = 'dead', settled_mark = ?
          WHERE endpoint = ? AND target = ? AND state = 'pending'`;
        db.run(sql, nowMark, endpoint, target);
        return true;
      }),
    getDelivery: async (id) => db.read(() => find(id)),
    async listDeliveries(before, limit, { endpoint, state, runId } = {}) {
      const { where, values } = whereOf<SqlValue>([
        ["id < ?", before ?? undefined],
        ["endpoint = ?", endpoint],
        ["state = ?", state],
        ["run_id = ?", runId],
      ]);
      const sql = `SELECT * FROM deliveries ${where} ORDER BY id DESC LIMIT ?`;
      return db.read(() => db.all(sql, ...values, limit)).map(toDelivery);
    },
    async countPendingDeliveries(most) {
      const sql = "SELECT count(*) AS n FROM (SELECT 1 FROM deliveries WHERE state = 'pending' LIMIT ?)";
      return Number(db.read(() => db.get(sql, most))!.n);
    },
    redeliver: async (id, nowMark) =>
      db.write("durable", () => {
        const set = "state = 'pending', settled_mark = NULL, due_mark = ?, since_mark = ?";
        db.run(`UPDATE deliveries SET ${set} WHERE id = ?`, nowMark, nowMark, id);
        return find(id);
      }),
  };
}

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

/** Deletes deliveries that ended by a mark, those beyond the newest `most`, and forgotten ones; returns their number. */
export function sweepDeliveries(db: Connection, endedBefore: number, most: number, budget: number): number {
  const remove = (condition: string, mark: number, count: number) => {
    const due = `SELECT id FROM deliveries WHERE ${condition} LIMIT ?`;
    return db.run(`DELETE FROM deliveries WHERE id IN (${due})`, mark, Math.max(count, 0)).changes;
  };
  const isSettled = "settled_mark IS NOT NULL";
  const newest = `SELECT settled_mark, id FROM deliveries WHERE ${isSettled} ORDER BY settled_mark DESC, id DESC`;
  // several may have ended in one millisecond
  const isSurplus = `${isSettled} AND (settled_mark, id) <= (${newest} LIMIT 1 OFFSET ?)`;
  let ended = remove("settled_mark <= ?", endedBefore, budget);
  ended += remove(isSurplus, most, budget - ended);
  return ended + remove("state = 'pending' AND since_mark <= ?", endedBefore - FORGOTTEN_MS, budget - ended);
}
