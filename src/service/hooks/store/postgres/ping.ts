import { randomUUID } from "node:crypto";
import { PLAIN_TERMS } from "../../run.js";
import type { Connection } from "./connection.js";
import { createRun } from "./inbox.js";
import { endRun, startRuns } from "./run-rows.js";

/**
 * Checks that a run could be started: starts one and takes it back, and commits a row, for which the server must be able
 * to write its log.
 */
export async function ping(db: Connection): Promise<void> {
  await db.transaction(async (tx) => {
    const id = randomUUID();
    const message = "trial";
    const common = {
      id,
      sessionKey: id,
      start: { origin: "agent" },
      terms: { ...PLAIN_TERMS, timeoutSeconds: 1 },
      createdAt: 0,
    } as const;
    const key = { scope: id, payloadHash: "", nowMark: 0, expiresMark: 0 };
    await createRun(tx, { ...common, createdMark: 0, maxWakeBytes: 0, compose: () => message }, key);
    const event = { event: "status", data: message };
    const which = "SELECT seq FROM lk.runs WHERE id = $1";
    await startRuns(tx, { which, worker: id, leaseMs: null, startedAt: 0, event }, id);
    const ending = { from: ["running"], to: "succeeded", finishedAt: 0, endedMark: 0, error: null } as const;
    const terminal = { event: "done", data: message };
    await endRun(tx, id, { ...ending, terminal }, { skip: 0, events: [], files: [] }, { events: 1, bytes: 1 });
    return tx.undo(undefined);
  });
  await db.query("UPDATE lk.pings SET at = now() WHERE id = 1");
}
