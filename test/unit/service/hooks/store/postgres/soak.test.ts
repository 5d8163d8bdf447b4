import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";
import { seededInts } from "../../../../../helpers/seeded.js";

const WORKER = fileURLToPath(new URL("../../../../../helpers/postgres/soak-worker.js", import.meta.url));
const SESSIONS = 8;
const RUNS = 160;
const WORKERS = 3;
const FAULTS = 12;
const DEADLINE_MS = 200_000;

const limits = { events: 1000, bytes: 1_000_000 };
const error = { error: "lost", code: "interrupted" };
const ending = {
  to: "interrupted",
  finishedAt: 1,
  endedMark: 1,
  error,
  terminal: { event: "error", data: "{}" },
} as const;

describe("workers of the PostgreSQL store", () => {
  const url = postgres();

  it("killed and stopped at random: each run ends once, in the order of its session @long", async () => {
    const schema = newSchema();
    const store = createPostgresStore({ url, schema });
    await store.open();
    const random = seededInts(7);
    const start = (): ChildProcess => spawn(process.execPath, [WORKER, url, schema], { stdio: "inherit" });
    const workers = Array.from({ length: WORKERS }, start);
    try {
      const ids = Array.from({ length: RUNS }, (_, i) => `r${i}`);
      const sessionOf = (i: number) => `s${i % SESSIONS}`;
      for (const [i, id] of ids.entries()) {
        await store.createRun(newRun(id, { sessionKey: sessionOf(i), createdAt: 1, createdMark: 1 }));
      }
      const end = Date.now() + DEADLINE_MS;
      const unfinished = async () => (await store.listRuns(null, RUNS)).filter(({ state }) => state !== "succeeded");
      let requeued = 0;
      for (let fault = 0; (await unfinished()).length > 0; fault++) {
        assert.ok(Date.now() < end, `${(await unfinished()).length} runs have not ended`);
        const at = random(WORKERS);
        if (fault < FAULTS && random(2) === 0) {
          workers[at]!.kill("SIGKILL");
          workers[at] = start();
        } else if (fault < FAULTS) {
          const stopped = workers[at]!;
          stopped.kill("SIGSTOP");
          setTimeout(() => stopped.kill("SIGCONT"), 1500).unref();
        }
        await sleep(500);
        requeued += (await store.recoverLost({ worker: "soak", requeues: 1000, ending, limits, count: 100 })).requeued
          .length;
      }
      assert.ok(requeued > 0, "no run was lost");
      for (let session = 0; session < SESSIONS; session++) {
        let before = 0;
        for (const id of ids.filter((_, i) => i % SESSIONS === session)) {
          const { events } = (await store.readEvents(id, 0, 1000, 1e9))!;
          assert.deepEqual(
            events.map((event) => event.id),
            events.map((_, i) => i + 1),
          );
          assert.equal(events.filter(({ event }) => event === "done").length, 1);
          assert.equal(events.at(-1)!.event, "done");
          // from the last start on, all events are one worker's
          const last = events.slice(events.findLastIndex(({ event }) => event === "status"));
          const stamps = last.map(({ data }) => JSON.parse(data) as { at: number; worker: string });
          assert.equal(new Set(stamps.map(({ worker }) => worker)).size, 1);
          assert.equal(stamps.length, 5);
          const times = events.map(({ data }) => (JSON.parse(data) as { at: number }).at);
          assert.ok(Math.min(...times.slice(1)) >= before, `${id} worked before the run before it had ended`);
          before = times.at(-1)!;
        }
      }
    } finally {
      for (const worker of workers) worker.kill("SIGKILL");
      await store.close();
    }
  });
});
