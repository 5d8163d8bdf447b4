#!/usr/bin/env node
// Kills, pauses and drains front ends and workers, and stops their database, while clients start, read and cancel runs.
// Checks that nothing that was acknowledged is lost, that no run ends twice, that a session's runs follow each other,
// that streams have no gap and no repeat, and that no file of a lost worker is served:
//   node scripts/soak-cluster.mjs [--times 200] [--fronts 3] [--workers 4] [--clients 4] [--database 4] [--seed 1]
// Needs Debian's PostgreSQL 15 or newer; the database is a cluster of its own in a temporary folder.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const TOKEN = "soak-token-soak-token";
const LEASE_SECONDS = 3;
/** A worker that is paused for so long has lost its runs. */
const PAUSE_MS = 5000;
const DATABASE_STOP_MS = 10_000;
const LONGEST_QUIET_MS = 2500;
/** A run that has not ended this long after its last event never will. */
const PATIENCE_MS = 120_000;
/** Unfinished runs of one client: more would only fill the queue. */
const OUTSTANDING = 12;
/** Two processes estimate the server's time this well. */
const CLOCK_MS = 250;
const TERMINAL = ["done", "error", "aborted"];
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
    fronts: { type: "string", default: "3" },
    workers: { type: "string", default: "4" },
    clients: { type: "string", default: "4" },
    database: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
  },
});
const times = Number(options.times);
const databaseStops = Number(options.database);
const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));

/** Repeatable choices; when processes die is not. */
function choices(seed) {
  let state = seed >>> 0 || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  return { below: (limit) => Math.floor(next() * limit) };
}

// the database

const isRoot = process.getuid?.() === 0;
/** Debian's user nobody: PostgreSQL refuses to run as root. */
const NOBODY = 65534;
const data = join(folder, "data");

const installed = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql").map(Number) : [];
const version = Math.max(...installed.filter((number) => number >= 15));
if (!Number.isFinite(version)) {
  console.error("Skipped: PostgreSQL 15 is not installed (Debian: apt-get install postgresql).");
  process.exit(process.env.CI ? 1 : 0);
}

function postgres(program, ...args) {
  const path = `/usr/lib/postgresql/${version}/bin/${program}`;
  const command = isRoot ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", path] : [path];
  execFileSync(command[0], [...command.slice(1), ...args], { cwd: folder, stdio: "ignore" });
}

const settings = `-c listen_addresses='' -k ${folder} -c max_connections=200`;
const startDatabase = () => postgres("pg_ctl", "-D", data, "-w", "-l", join(folder, "log"), "-o", settings, "start");
const stopDatabase = (mode) => postgres("pg_ctl", "-D", data, "-m", mode, "-w", "stop");
const store = `postgres://latentkit@localhost/postgres?host=${folder}`;

// the processes

/** @typedef {{ kind: string, url: string | null, child?: import("node:child_process").ChildProcess, ended?: Promise<any>, log: string, isBusy: boolean }} Part */

const configFile = join(folder, "config.json");

async function start(/** @type {Part} */ part) {
  const args = part.kind === "front" ? ["serve", "--no-render", "--port", "0"] : ["worker", "--concurrency", "4"];
  const command = [join(ROOT, "bin/latentkit.mjs"), ...args, "--config", configFile, "--json", "--quiet"];
  const child = spawn(process.execPath, command, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SOAK_OUT: join(folder, "out") },
  });
  part.child = child;
  part.ended = once(child, "exit");
  child.stderr.on("data", (chunk) => {
    part.log = (part.log + chunk).slice(-4000);
  });
  for await (const line of createInterface({ input: child.stdout })) {
    part.url = JSON.parse(line).url ?? null;
    child.stdout.resume();
    return true;
  }
  await part.ended;
  return false;
}

/** Starts a part until it stays: one that meets a stopped database ends with exit code 3. */
async function up(/** @type {Part} */ part) {
  for (const end = Date.now() + PATIENCE_MS; !(await start(part)); await sleep(200)) {
    assert.equal(part.child?.exitCode, 3, part.log);
    assert.ok(Date.now() < end, `a ${part.kind} does not start:\n${part.log}`);
  }
}

async function down(/** @type {Part} */ part, signal) {
  part.url = null;
  part.child?.kill(signal);
  await part.ended;
}

const part = (kind) => ({ kind, url: null, log: "", isBusy: false });
/** @type {Part[]} */
const fronts = Array.from({ length: Number(options.fronts) }, () => part("front"));
/** @type {Part[]} */
const workers = Array.from({ length: Number(options.workers) }, () => part("worker"));
const counts = { killed: 0, drained: 0, paused: 0, database: 0 };
let isOver = false;

async function attack() {
  const { below } = choices(Number(options.seed));
  const every = Math.max(1, Math.floor(times / Math.max(1, databaseStops)));
  /** @type {Promise<void>[]} */
  const repairs = [];
  for (let n = 1; n <= times; n++) {
    await sleep(below(LONGEST_QUIET_MS));
    if (databaseStops > 0 && n % every === 0) {
      stopDatabase(below(2) === 0 ? "fast" : "immediate");
      await sleep(DATABASE_STOP_MS);
      startDatabase();
      counts.database += 1;
      continue;
    }
    const idle = () => [...fronts, ...workers].filter(({ isBusy }) => !isBusy);
    // half of the processes work at any time, or the clients could only wait
    while (idle().length * 2 <= fronts.length + workers.length) await sleep(50);
    const victim = idle()[below(idle().length)];
    if (victim === undefined) continue;
    victim.isBusy = true;
    const choice = below(10);
    repairs.push(
      (choice < 6 ? kill(victim) : choice < 8 ? drain(victim) : pause(victim)).finally(() => {
        victim.isBusy = false;
      }),
    );
    if (n % 20 === 0) process.stderr.write(`${n} faults, ${runs.size} runs\n`);
  }
  await Promise.all(repairs);
  isOver = true;
}

async function kill(victim) {
  await down(victim, "SIGKILL");
  counts.killed += 1;
  await up(victim);
}

async function drain(victim) {
  await down(victim, "SIGTERM");
  assert.equal(victim.child?.exitCode, 0, `a ${victim.kind} that was told to end:\n${victim.log}`);
  counts.drained += 1;
  await up(victim);
}

async function pause(victim) {
  victim.child?.kill("SIGSTOP");
  await sleep(PAUSE_MS);
  victim.child?.kill("SIGCONT");
  counts.paused += 1;
}

// the clients

/** @type {Map<string, { session: string, events: { id: number, event: string, data: string }[] }>} */
const runs = new Map();
let streams = 0;

/** Address of a front end that is up. */
async function front(below) {
  for (;;) {
    const urls = fronts.flatMap(({ url }) => url ?? []);
    if (urls.length > 0) return urls[below(urls.length)];
    await sleep(5);
  }
}

/** Returns the response of any front end, however often they die on the way. */
async function request(below, path, init = {}) {
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(20)) {
    const url = await front(below);
    try {
      const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", ...init.headers };
      const response = await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(12_000) });
      const text = await response.text();
      if (response.status === 200) return text;
      // the database is away, or the process is about to end
      assert.equal(response.status, 503, `${path}: ${text}`);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
    }
    assert.ok(Date.now() < end, `${path}: no response`);
  }
}

async function client(number) {
  const { below } = choices(Number(options.seed) * 1000 + number);
  const open = new Set();
  const track = (work) => {
    const tracked = work.finally(() => open.delete(tracked));
    open.add(tracked);
    // awaited at the end, or by the race
    tracked.catch(() => undefined);
  };
  for (let n = 0; !isOver; n++) {
    if (open.size >= OUTSTANDING) {
      await Promise.race(open);
      continue;
    }
    const key = `key-${number}-${n}`;
    const session = `hook:${number}-${below(3)}`;
    const message = JSON.stringify({ key, deltas: below(20), pauseMs: below(20) });
    const body = JSON.stringify({ message, sessionKey: session });
    const init = { method: "POST", body, headers: { "idempotency-key": key } };
    const { run_id: id } = JSON.parse(await request(below, "/hooks/agent", init));
    assert.ok(!runs.has(id), `${key} gave the run of another key`);
    runs.set(id, { session, events: [] });
    track(readToEnd(id, below));
    if (below(6) === 0) track(cancelLater(id, below));
    await sleep(below(40));
  }
  await Promise.all(open);
}

async function cancelLater(id, below) {
  await sleep(below(600));
  const { done, status } = JSON.parse(await request(below, `/api/runs/${id}/cancel`, { method: "POST" }));
  assert.ok(done, `cancel returned ${status}`);
}

/** Reads a run's stream to its terminal event, from one front end after the other. */
async function readToEnd(id, below) {
  const { events } = runs.get(id) ?? { events: [] };
  for (let end = Date.now() + PATIENCE_MS; !TERMINAL.includes(events.at(-1)?.event ?? ""); ) {
    assert.ok(Date.now() < end, `run ${id} does not end`);
    const before = events.length;
    await readOnce(id, events, below, below(10) === 0 ? below(300) : 15_000);
    if (events.length > before) end = Date.now() + PATIENCE_MS;
    streams += 1;
    await sleep(5);
  }
}

async function readOnce(id, events, below, lifeMs) {
  const url = await front(below);
  const headers = { authorization: `Bearer ${TOKEN}`, "last-event-id": String(events.at(-1)?.id ?? -1) };
  try {
    const response = await fetch(`${url}/api/stream?run_id=${id}`, { headers, signal: AbortSignal.timeout(lifeMs) });
    if (response.status === 503) return;
    assert.equal(response.status, 200, `stream of ${id}, acknowledged before`);
    let text = "";
    for await (const chunk of /** @type {ReadableStream} */ (response.body).pipeThrough(new TextDecoderStream())) {
      const frames = (text + chunk).split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) take(frame, id, events);
    }
  } catch (error) {
    // a front end is gone, or this reader has had enough
    if (error instanceof assert.AssertionError) throw error;
  }
}

function take(frame, id, events) {
  const field = (name) => frame.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
  const event = field("event");
  if (event === undefined) return;
  const data = JSON.parse(field("data"));
  if (event === "replay_meta") return assert.equal(data.replay_truncated, false);
  const last = events.at(-1);
  assert.ok(!TERMINAL.includes(last?.event), `run ${id}: ${event} after ${last?.event}`);
  assert.equal(Number(field("id")), (last?.id ?? 0) + 1, `run ${id}: gap or repeat`);
  // each start begins anew; its deltas are numbered
  const expected = last?.event === "delta" ? JSON.parse(last.data).i + 1 : 0;
  if (event === "delta") assert.equal(data.i, expected, `run ${id}: an event is missing or doubled`);
  if (event === "done") assert.equal(JSON.parse(data.response).deltas, expected, `run ${id}: events are missing`);
  events.push({ id: Number(field("id")), event, data: field("data") });
}

// the checks

/** Checks that the store holds in the end what the readers got on the way, and files of the last start alone. */
async function checkAll() {
  const { below } = choices(7);
  const states = {};
  for (const [id, { events }] of runs) {
    const run = JSON.parse(await request(below, `/api/run_status?run_id=${id}`));
    assert.ok(run.done, `run ${id} is ${run.status}`);
    states[run.status] = (states[run.status] ?? 0) + 1;
    /** @type {{ id: number, event: string, data: string }[]} */
    const whole = [];
    while (!TERMINAL.includes(whole.at(-1)?.event ?? "")) await readOnce(id, whole, below, 15_000);
    assert.deepEqual(whole, events, `run ${id}: the union of a reader is not the stored whole`);
    if (run.status !== "succeeded") continue;
    const { attempt } = JSON.parse(JSON.parse(whole.at(-1)?.data ?? "").response);
    const file = await request(below, `/api/runs/${id}/files/result.txt`);
    assert.equal(file, `${id} ${attempt}`, `run ${id}: the file of a worker that was lost`);
  }
  return states;
}

async function checkDatabase() {
  const client = new pg.Client({ connectionString: store });
  await client.connect();
  const rows = async (sql) => (await client.query(sql)).rows;
  const [{ n }] = await rows("SELECT count(*)::int AS n FROM latentkit.runs");
  assert.equal(n, runs.size, "runs in the store and acknowledged keys");
  const twice = await rows(`SELECT run FROM latentkit.runs LEFT JOIN latentkit.events ON run = seq
    AND event IN ('done', 'error', 'aborted') GROUP BY seq, run HAVING count(run) <> 1`);
  assert.deepEqual(twice, [], "runs without exactly one end");
  const overlaps = await rows(`SELECT * FROM (
      SELECT id, started_at, lag(finished_at) OVER (PARTITION BY session ORDER BY seq) AS before
      FROM latentkit.runs WHERE started_at IS NOT NULL
    ) AS started WHERE started_at < before - ${CLOCK_MS}`);
  assert.deepEqual(overlaps, [], "runs that began before an earlier one of their session had ended");
  const early = await rows("SELECT id FROM latentkit.runs WHERE state = 'interrupted' AND losses < 2");
  assert.deepEqual(early, [], "runs that were interrupted before their second loss");
  const [{ lost, again }] = await rows(
    "SELECT sum(losses)::int AS lost, count(*) FILTER (WHERE token > 1)::int AS again FROM latentkit.runs",
  );
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
  await client.end();
  return { lost_leases: lost, started_again: again };
}

const started = Date.now();
try {
  if (isRoot) {
    chmodSync(folder, 0o755);
    chownSync(folder, NOBODY, NOBODY);
  }
  postgres("initdb", "-D", data, "-A", "trust", "-U", "latentkit", "--no-locale", "-E", "UTF8");
  startDatabase();
  mkdirSync(join(folder, "out"));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  const web = { hooks_token: TOKEN, hooks_allow_request_session_key: true };
  const limits = {
    ...{ lease_seconds: LEASE_SECONDS, drain_seconds: 1, retention_runs: 1_000_000, queued: 100_000 },
    ...{ starts_per_10s: 100_000, session_starts_per_10s: 100_000 },
  };
  const config = { store, agent: { module: join(folder, "agent.mjs") }, channels: { web }, limits };
  writeFileSync(configFile, JSON.stringify({ ...config, output_dir: join(folder, "out") }));
  await up(fronts[0]);
  await Promise.all([...fronts.slice(1), ...workers].map(up));
  await Promise.all([attack(), ...Array.from({ length: Number(options.clients) }, (_, i) => client(i + 1))]);
  const states = await checkAll();
  const leases = await checkDatabase();
  const events = [...runs.values()].reduce((sum, run) => sum + run.events.length, 0);
  const seconds = Math.round((Date.now() - started) / 1000);
  console.log(
    JSON.stringify({ ...counts, runs: runs.size, events, streams_opened: streams, states, ...leases, seconds }),
  );
} finally {
  for (const { child } of [...fronts, ...workers]) child?.kill("SIGKILL");
  try {
    stopDatabase("immediate");
  } catch {
    // it was not running
  }
  rmSync(folder, { recursive: true, force: true });
}
