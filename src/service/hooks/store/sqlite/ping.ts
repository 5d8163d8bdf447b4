import { randomUUID } from "node:crypto";
import { PLAIN_TERMS } from "../../run.js";
import type { Connection } from "./connection.js";
import { createRun } from "./inbox.js";
import { endRun, startRun } from "./run-rows.js";

/** Fits one page. */
const PAGE_BYTES = 1000;
/** More than a start writes. */
const START_BYTES = 65_536;

// decision 149
/**
 * Checks that a run could be started: starts one, rolls it back, and writes one page. After a failure it also repeats the
 * statement that failed, and writes as much as a start does: where both succeed, the store has recovered.
 */
export function ping(db: Connection): void {
  const { failure } = db;
  db.rehearse(() => {
    failure?.repeat();
    createAndEndRun(db);
  });
  const bytes = failure === undefined ? PAGE_BYTES : START_BYTES;
  db.write("trailing", () => db.run("UPDATE pings SET filler = randomblob(?) WHERE id = 1", bytes));
  db.forgetFailure();
}

function createAndEndRun(db: Connection): void {
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
  const graph = { name: null, text: id };
  createRun(db, { ...common, graph, createdMark: 0, maxWakeBytes: 0, compose: () => message }, undefined, key);
  startRun(db, id, 0, { event: "status", data: message });
  const ending = { from: ["running"], to: "succeeded", finishedAt: 0, endedMark: 0, error: null } as const;
  const terminal = { event: "done", data: message };
  endRun(db, id, { ...ending, terminal }, { skip: 0, events: [], files: [] }, { events: 1, bytes: 1 });
}
