#!/usr/bin/env node
// Costs of a long queue, on this machine: the time of a start, and that of a claim, with few runs queued and with many.
//   node bench/queue.mjs [--store postgres://…] [--queued 100000] [--starts 500]
// Without a store, a service with an SQLite file runs them itself; with one, a front end takes them, and this program
// claims some as a worker does. The runs are those of a temporary folder, or of a schema that is removed in the end.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createHookService, createSqliteStore } from "latentkit/hooks";
import { createPostgresStore } from "latentkit/postgres";
import pg from "pg";

/** Most items of a group. */
const GROUP = 1000;
const FEW = 1000;
const CLAIMS = 100;

const { values } = parseArgs({
  options: {
    store: { type: "string" },
    queued: { type: "string", default: "100000" },
    starts: { type: "string", default: "500" },
  },
});

const folder = mkdtempSync(join(tmpdir(), "latentkit-queue-"));
const schema = `queue_${process.pid}`;
const newStore = () =>
  values.store === undefined
    ? createSqliteStore(join(folder, "store.db"))
    : createPostgresStore({ url: values.store, schema });
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const service = createHookService({
  // the first ones hold every slot
  agent: (_run, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  store: newStore(),
  workers: values.store !== undefined,
  logger: silent,
  config: {
    hooks_token: "a-token-of-the-bench",
    limits: { queued: 1_000_000, run_seconds: 3600, queue_seconds: 86_400 },
  },
});

try {
  let queued = 0;
  for (const most of [FEW, Number(values.queued)]) {
    for (; queued < most; queued += GROUP) {
      await service.runs.startGroup(
        Array.from({ length: GROUP }, () => ({ origin: "agent", message: "a quiet lake" })),
      );
    }
    const line = { queued, start: percentiles(await timesOfStarts()), ...(values.store && { claim: await claims() }) };
    console.log(JSON.stringify(line));
  }
} finally {
  await service.close(0);
  rmSync(folder, { recursive: true, force: true });
  if (values.store !== undefined) {
    const client = new pg.Client({ connectionString: values.store });
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
  }
}

async function timesOfStarts() {
  const times = [];
  for (let i = 0; i < Number(values.starts); i++) {
    const since = performance.now();
    await service.runs.start({ origin: "agent", message: "a quiet lake", sessionKey: `start ${i}` });
    times.push(performance.now() - since);
  }
  return times;
}

/** Claims and gives back one run after the other, as workers do. */
async function claims() {
  const store = /** @type {ReturnType<typeof createPostgresStore>} */ (newStore());
  const event = { event: "status", data: "{}" };
  const times = [];
  for (let i = 0; i < CLAIMS; i++) {
    const since = performance.now();
    const held = await store.claim({
      startedAt: Date.now(),
      nowMark: Date.now(),
      worker: "bench",
      count: 1,
      takesBatches: true,
      leaseMs: 60_000,
      event,
    });
    times.push(performance.now() - since);
    for (const { run, token } of held) await store.release(run.id, token);
  }
  await store.close();
  return percentiles(times);
}

/** @param {number[]} times */
function percentiles(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(2)} ms`;
  return { median: at(0.5), p99: at(0.99) };
}
