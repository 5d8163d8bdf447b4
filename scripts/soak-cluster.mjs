#!/usr/bin/env node
// Kills, pauses and drains services, front ends and workers, and stops their database, while clients start, read and
// cancel runs.
// Checks that nothing that was acknowledged is lost, that no run ends twice, that a session's runs follow each other,
// that streams of runs and groups have no gap and no repeat, that no file of a lost worker is served, and that every end
// reaches a webhook:
//   node scripts/soak-cluster.mjs [--times 200] [--clients 4] [--seed 1]
//     [--store postgres] [--serves 2] [--fronts 1] [--workers 3] [--database 4]
//     [--store sqlite] [--requeue]: one service, whose runs a restart interrupts or starts again
// PostgreSQL is Debian's, 15 or newer; the database is a cluster of its own in a temporary folder.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Clients } from "./soak-cluster/clients.mjs";
import { Postgres, Sqlite } from "./soak-cluster/databases.mjs";
import { attack, Part } from "./soak-cluster/processes.mjs";
import { Receiver } from "./soak-cluster/receiver.mjs";

const TOKEN = "soak-token-soak-token";
const SECRET = `whsec_${Buffer.from("a secret of the soak, 32 bytes..").toString("base64")}`;
const LEASE_SECONDS = 3;
const AGENT = `
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default async ({ id, message, attempt = 1 }, { emit, addFile, signal }) => {
  const { deltas, pauseMs } = JSON.parse(message);
  for (let i = 0; i < deltas && !signal.aborted; i++) {
    emit("delta", { i });
    await pause(pauseMs);
  }
  signal.throwIfAborted();
  const folder = join(process.env.SOAK_OUT, id + "." + attempt);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "result.txt"), id + " " + attempt);
  addFile({ path: join(folder, "result.txt") });
  return { response: JSON.stringify({ attempt, deltas }) };
};
`;

const { values: options } = parseArgs({
  options: {
    times: { type: "string", default: "200" },
    store: { type: "string", default: "postgres" },
    requeue: { type: "boolean", default: false },
    serves: { type: "string", default: "2" },
    fronts: { type: "string", default: "1" },
    workers: { type: "string", default: "3" },
    clients: { type: "string", default: "4" },
    database: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
  },
});
const seed = Number(options.seed);
const started = Date.now();
const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));
const configFile = join(folder, "config.json");
const isShared = options.store === "postgres";
const database = isShared ? new Postgres(folder) : new Sqlite(folder);
if (database.lack !== undefined) {
  console.error(`Skipped: ${database.lack}.`);
  process.exit(process.env.CI ? 1 : 0);
}
const parts = (kind, count) => Array.from({ length: Number(count) }, () => new Part(kind, configFile));
const fronts = isShared ? [...parts("serve", options.serves), ...parts("front", options.fronts)] : parts("serve", 1);
const workers = isShared ? parts("worker", options.workers) : [];
const clients = new Clients({ fronts, token: TOKEN, seed });
const receiver = new Receiver({ secret: SECRET, seed });
process.env.SOAK_OUT = join(folder, "out");
try {
  database.create();
  database.start();
  mkdirSync(join(folder, "out"));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  writeFileSync(configFile, JSON.stringify(configuration(await receiver.listen())));
  await fronts[0].up();
  await Promise.all([...fronts.slice(1), ...workers].map((part) => part.up()));
  const attacked = attack({
    parts: [...fronts, ...workers],
    database,
    seed,
    times: Number(options.times),
    databaseStops: isShared ? Number(options.database) : 0,
  }).finally(() => {
    clients.isOver = true;
  });
  const [faults] = await Promise.all([
    attacked,
    ...Array.from({ length: Number(options.clients) }, (_, i) => clients.work(i + 1)),
  ]);
  const { runs, streams } = clients;
  const states = await clients.check();
  const webhooks = await receiver.check([...states].map(([id, state]) => `${id}_${state}`));
  // a file of SQLite is its process's alone
  await Promise.all([...fronts, ...workers].map((part) => part.end()));
  await checkDatabase(runs);
  const leases = isShared ? await checkLeases() : {};
  const events = [...runs.values()].reduce((sum, run) => sum + run.events.length, 0);
  const seconds = Math.round((Date.now() - started) / 1000);
  console.log(
    JSON.stringify({
      ...faults,
      runs: runs.size,
      groups: clients.groups.size,
      events,
      streams_opened: streams,
      states: counted(states.values()),
      webhooks,
      ...leases,
      seconds,
    }),
  );
} finally {
  receiver.close();
  for (const { child } of [...fronts, ...workers]) child?.kill("SIGKILL");
  try {
    database.stop("immediate");
  } catch {
    // it was not running
  }
  rmSync(folder, { recursive: true, force: true });
}

/** @param {string} url Address of the webhooks' receiver. */
function configuration(url) {
  const web = {
    hooks_token: TOKEN,
    hooks_allow_request_session_key: true,
    on_restart: options.requeue ? "requeue" : "interrupt",
    webhooks: { soak: { url, secrets: SECRET, allow_networks: ["127.0.0.1"] } },
  };
  const limits = {
    lease_seconds: LEASE_SECONDS,
    drain_seconds: 1,
    retention_runs: 1_000_000,
    queued: 100_000,
    starts_per_10s: 100_000,
    session_starts_per_10s: 100_000,
    webhook_seconds: 1,
  };
  const agent = { module: join(folder, "agent.mjs") };
  return { store: database.url, agent, channels: { web }, limits, output_dir: join(folder, "out") };
}

/**
 * Checks the rows of the store: each run ended once, after those before it in its session, and none is unknown.
 *
 * @param {Clients["runs"]} runs
 */
async function checkDatabase(runs) {
  const rows = (sql) => database.rows(sql);
  const [{ n }] = await rows("SELECT CAST(count(*) AS int) AS n FROM latentkit.runs");
  assert.equal(n, runs.size, "runs in the store and acknowledged keys");
  const twice = await rows(`SELECT run FROM latentkit.runs LEFT JOIN latentkit.events ON run = seq
    AND event IN ('done', 'error', 'aborted') GROUP BY seq, run HAVING count(run) <> 1`);
  assert.deepEqual(twice, [], "runs without exactly one end");
  const overlaps = await rows(`SELECT * FROM (
      SELECT id, started_at, lag(finished_at) OVER (PARTITION BY session ORDER BY seq) AS before
      FROM latentkit.runs WHERE started_at IS NOT NULL
    ) AS started WHERE started_at < before`);
  assert.deepEqual(overlaps, [], "runs that began before an earlier one of their session had ended");
  // by the clients' order of acknowledgement
  const order = await rows(
    "SELECT runs.id, key FROM latentkit.runs JOIN latentkit.sessions ON sessions.id = session ORDER BY seq",
  );
  const acknowledged = [...runs].map(([id, { session }]) => `${session} ${id}`);
  const stored = order.map(({ id, key }) => `${key} ${id}`);
  for (const key of new Set(order.map((row) => row.key))) {
    const own = (list) => list.filter((line) => line.startsWith(`${key} `));
    assert.deepEqual(own(stored), own(acknowledged), `order of ${key}`);
  }
}

/** How often each of these comes. @param {Iterable<string>} names */
function counted(names) {
  const counts = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Checks that runs of lost workers started again, and counts these. */
async function checkLeases() {
  const early = await database.rows("SELECT id FROM latentkit.runs WHERE state = 'interrupted' AND losses < 2");
  assert.deepEqual(early, [], "runs that were interrupted before their second loss");
  const [{ lost, again }] = await database.rows(
    "SELECT sum(losses)::int AS lost, count(*) FILTER (WHERE token > 1)::int AS again FROM latentkit.runs",
  );
  return { lost_leases: lost, started_again: again };
}
