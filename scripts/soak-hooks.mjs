#!/usr/bin/env node
// Kills the service with SIGKILL at random moments while clients start, resume and cancel runs, and checks that nothing
// that was acknowledged is lost:  node scripts/soak-hooks.mjs [--times 200] [--clients 4] [--seed 1] [--requeue]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const TOKEN = "soak-token-soak-token";
const LONGEST_LIFE_MS = 600;
/** A run that has not ended this long after the last kill never will. */
const PATIENCE_MS = 120_000;
/** Unfinished runs of one client: more would only fill the queue. */
const OUTSTANDING = 8;
const TERMINAL = ["done", "error", "aborted"];
const AGENT = `
export default async ({ message }, { emit, signal }) => {
  const { deltas, pauseMs } = JSON.parse(message);
  for (let i = 0; i < deltas && !signal.aborted; i++) {
    emit("delta", { delta: message + i });
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return { response: message };
};
`;

const { values: options } = parseArgs({
  options: {
    times: { type: "string", default: "200" },
    clients: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
    requeue: { type: "boolean", default: false },
  },
});
const [times, clientCount] = [Number(options.times), Number(options.clients)];
const folder = mkdtempSync(join(tmpdir(), "latentkit-soak-"));
const configFile = join(folder, "config.json");
writeFileSync(join(folder, "agent.mjs"), AGENT);
const web = {
  hooks_token: TOKEN,
  hooks_allow_request_session_key: true,
  on_restart: options.requeue ? "requeue" : "interrupt",
};
const config = {
  store: `sqlite:${join(folder, "soak.db")}`,
  agent: { module: join(folder, "agent.mjs") },
  channels: { web },
  limits: { retention_runs: 1_000_000 },
};
writeFileSync(configFile, JSON.stringify(config));

/** Repeatable choices of a client; when processes die is not. */
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

/**
 * The service under attack; `url` is null while it is down.
 *
 * @typedef {import("node:stream").Readable} Readable
 * @type {{ url: string | null, child?: import("node:child_process").ChildProcessByStdio<null, Readable, Readable> }}
 */
const service = { url: null };
let isOver = false;
let kills = 0;
let resumed = 0;
/** run id -> { events: [{ id, event, data }], cancelled } */
const runs = new Map();
let keys = 0;

function spawnService() {
  const serve = ["serve", "--config", configFile, "--port", "0", "--json", "--quiet"];
  const child = spawn(process.execPath, [join(ROOT, "bin/latentkit.mjs"), ...serve], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  service.child = child;
  return child;
}

async function startService() {
  const child = spawnService();
  let log = "";
  child.stderr.on("data", (chunk) => {
    log = (log + chunk).slice(-4000);
  });
  const exited = once(child, "exit").then(([code]) => {
    throw new Error(`the service ended by itself with ${code}:\n${log}`);
  });
  const listening = (async () => {
    for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line).url;
    return exited;
  })();
  service.url = await Promise.race([listening, exited]);
  exited.catch(() => undefined);
}

async function killService() {
  const { child } = service;
  if (child === undefined) throw new Error("The service was not started.");
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  service.url = null;
  await exited;
}

/** Dies while it recovers. */
async function killAtStart() {
  spawnService();
  await sleep(Math.random() * LONGEST_LIFE_MS);
  await killService();
  kills += 1;
}

async function up() {
  while (service.url === null) await sleep(5);
  return service.url;
}

/** Returns the response, however often the service dies on the way; HTTP errors are failures of the soak. */
async function request(path, init = {}) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const url = await up();
    try {
      const response = await fetch(url + path, {
        ...init,
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", ...init.headers },
        signal: AbortSignal.timeout(20_000),
      });
      const body = /** @type {any} */ (await response.json());
      assert.equal(response.status, 200, `${path}: ${JSON.stringify(body)}`);
      return { body, headers: response.headers };
    } catch (error) {
      if (error instanceof assert.AssertionError || Date.now() > deadline) throw error;
      await sleep(10);
    }
  }
}

async function client(number) {
  const { below } = choices(Number(options.seed) * 1000 + number);
  const open = new Set();
  const track = (work) => {
    const tracked = work.finally(() => open.delete(tracked));
    open.add(tracked);
  };
  while (!isOver) {
    if (open.size >= OUTSTANDING) {
      await Promise.race(open);
      continue;
    }
    keys += 1;
    const key = `key-${number}-${keys}`;
    const message = JSON.stringify({ key, deltas: below(30), pauseMs: below(12) });
    const body = JSON.stringify({ message, sessionKey: `hook:${below(6)}` });
    const { body: run } = await request("/hooks/agent", { method: "POST", body, headers: { "idempotency-key": key } });
    assert.ok(!runs.has(run.run_id), `${key} gave the run of another key`);
    runs.set(run.run_id, { events: [], message });
    track(readToEnd(run.run_id, below));
    if (below(4) === 0) track(cancelLater(run.run_id, below(400)));
    await sleep(below(60));
  }
  await Promise.all(open);
}

async function cancelLater(id, ms) {
  await sleep(ms);
  const { body } = await request(`/api/runs/${id}/cancel`, { method: "POST" });
  assert.ok(body.done, `cancel returned ${body.status}`);
}

/** Reads a run's stream to its terminal event, over kills and its own disconnects, and checks every id on the way. */
async function readToEnd(id, below) {
  const { events } = runs.get(id);
  const deadline = () => Date.now() + PATIENCE_MS;
  for (let end = deadline(); !TERMINAL.includes(events.at(-1)?.event); ) {
    assert.ok(Date.now() < end, `run ${id} does not end`);
    const before = events.length;
    await readOnce(id, events, below(10) === 0 ? below(300) : 60_000);
    if (events.length > before) end = deadline();
    resumed += 1;
    await sleep(5);
  }
}

async function readOnce(id, events, lifeMs) {
  const url = await up();
  const headers = { authorization: `Bearer ${TOKEN}`, "last-event-id": String(events.at(-1)?.id ?? -1) };
  let response;
  try {
    response = await fetch(`${url}/api/stream?run_id=${id}`, { headers, signal: AbortSignal.timeout(lifeMs) });
  } catch {
    return; // the service is down, or this reader has had enough
  }
  assert.equal(response.status, 200, `stream of ${id}, acknowledged before`);
  try {
    let text = "";
    for await (const chunk of /** @type {ReadableStream} */ (response.body).pipeThrough(new TextDecoderStream())) {
      const frames = (text + chunk).split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) take(frame, id, events);
    }
  } catch (error) {
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
  events.push({ id: Number(field("id")), event, data: field("data") });
}

/** Checks that the store holds in the end what the readers got on the way. */
async function checkAll() {
  const states = {};
  for (const [id, { events }] of runs) {
    const { body } = await request(`/api/run_status?run_id=${id}`);
    assert.ok(body.done, `run ${id} is ${body.status}`);
    const whole = [];
    await readOnce(id, whole, 20_000);
    assert.deepEqual(whole, events, `run ${id}: the union of a reader is not the stored whole`);
    assert.equal(whole.filter(({ event }) => TERMINAL.includes(event)).length, 1);
    states[body.status] = (states[body.status] ?? 0) + 1;
  }
  let listed = 0;
  for (let cursor = ""; cursor !== null; ) {
    const { body } = await request(`/api/runs?limit=200&cursor=${cursor}`);
    listed += body.runs.length;
    cursor = body.next_cursor;
  }
  assert.equal(listed, runs.size, "runs in the store and acknowledged keys");
  return states;
}

async function attack() {
  await startService();
  while (kills < times) {
    await sleep(Math.random() * LONGEST_LIFE_MS);
    await killService();
    kills += 1;
    if (Math.random() < 0.2) await killAtStart();
    await startService();
    if (kills % 20 === 0) process.stderr.write(`${kills} kills, ${runs.size} runs\n`);
  }
  isOver = true;
}

const started = Date.now();
try {
  await Promise.all([attack(), ...Array.from({ length: clientCount }, (_, i) => client(i + 1))]);
  const states = await checkAll();
  const events = [...runs.values()].reduce((sum, run) => sum + run.events.length, 0);
  const seconds = Math.round((Date.now() - started) / 1000);
  console.log(JSON.stringify({ kills, runs: runs.size, events, streams_opened: resumed, states, seconds }));
} finally {
  service.child?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
