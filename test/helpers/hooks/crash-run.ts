// A process of its own that works on a store file and kills itself before its n-th statement. What it acknowledged goes
// to stdout, a line each: "run ID", "wake TEXT".
import { writeSync } from "node:fs";
import type { Agent } from "#src/service/agent/agent.js";
import { systemClock } from "#src/service/hooks/clock.js";
import { localFiles } from "#src/service/hooks/files/file-store.js";
import { createRuns } from "#src/service/hooks/runs/create-runs.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import { faultyDriver } from "./faulty-driver.js";
import { defaultLimits, idempotency, retryPolicy, until } from "./hook-runs.js";

const [path, countText] = process.argv.slice(2);
const driver = faultyDriver();
const store = createSqliteStore(path!, { driver });
let left = Number(countText);
driver.before = () => {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
};
const agent: Agent = async ({ message }, { emit }) => {
  for (let i = 0; i < 3; i++) {
    emit("delta", { delta: String(i) });
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { response: message };
};
const runs = createRuns({
  agent,
  store,
  limits: defaultLimits(),
  onRestart: "interrupt",
  onLoss: "interrupt",
  hasWorker: true,
  retries: retryPolicy(),
  files: localFiles,
  clock: systemClock,
  observer: {},
  heartbeatSeconds: 0,
});
const printLine = (line: string) => writeSync(1, `${line}\n`);
const ended = (id: string) => until(async () => (await runs.get(id)).finishedAt !== null, "the end");

const session = { sessionKey: "hook:a" };
for (const text of ["w1", "w2"]) {
  await runs.queueWake({ ...session, text });
  printLine(`wake ${text}`);
}
const first = await runs.start({ ...session, origin: "agent", message: "m1" }, { idempotency: idempotency() });
printLine(`run ${first.runId}`);
const second = await runs.start({ ...session, origin: "agent", message: "m2" });
printLine(`run ${second.runId}`);
await ended(first.runId);
await runs.cancel(second.runId);
await runs.queueWake({ ...session, text: "w3" });
printLine("wake w3");
const beat = await runs.heartbeat();
printLine(`run ${beat.runs[0]!.runId}`);
await ended(beat.runs[0]!.runId);
printLine(`all ${Number(countText) - left}`);
await runs.close(0);
