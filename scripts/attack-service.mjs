#!/usr/bin/env node
// Attacks a service of its own over the loopback and measures how long /health takes and how far its memory grows:
//   node scripts/attack-service.mjs [--only readers,pipelining] [--json]
// Exit code 1 where an attack delays /health or takes memory beyond the bounds below, or is not refused as it should be.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const SCRIPT = fileURLToPath(import.meta.url);
const ROOT = join(dirname(SCRIPT), "..");
const TOKEN = "attack-token-attack-token";
const AUTH = `Authorization: Bearer ${TOKEN}`;
const LONGEST_HEALTH_MS = 250;
const MOST_GROWTH_BYTES = 300 * 2 ** 20;
const POLL_MS = 20;
const SAMPLE_MS = 100;
/** Of one attack, whatever it waits for. */
const PATIENCE_MS = 20_000;
/** As many as `streams_per_run` allows. */
const READERS_PER_RUN = 20;
const EVENTS = 9990;
const BLANKS = " ".repeat(100_000);

/** Runs: "events N BYTES" emits deltas so that the run has N events; "file BYTES" reports a file. */
const AGENT = `
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
export default async ({ id, message }, { emit, addFile }) => {
  const [what, ...numbers] = message.split(" ");
  const [first, second] = numbers.map(Number);
  if (what === "events") {
    // status and done are events too
    for (let i = 0; i < first - 2; i++) {
      emit("delta", { delta: "x".repeat(second) });
      if (i % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  if (what === "file") {
    const path = fileURLToPath(new URL(id + ".bin", import.meta.url));
    writeFileSync(path, Buffer.alloc(first));
    return { response: addFile({ path }).name };
  }
  return { response: "done" };
};
`;

/** In a process of its own: the attacker's work must not count as the service's. Tells each answer's ms. */
async function pollHealth(url) {
  process.once("disconnect", () => process.exit());
  for (;;) {
    const since = performance.now();
    const status = await fetch(`${url}/health`, { signal: AbortSignal.timeout(PATIENCE_MS) }).then(
      (answer) => answer.text().then(() => answer.status),
      () => 0,
    );
    process.send({ ms: performance.now() - since, status });
    await sleep(POLL_MS);
  }
}

async function main() {
  const { values } = parseArgs({ options: { only: { type: "string" }, json: { type: "boolean", default: false } } });
  const attacks = allAttacks();
  const wanted = values.only?.split(",") ?? Object.keys(attacks);
  for (const name of wanted) {
    if (attacks[name] !== undefined) continue;
    process.stderr.write(`--only: expected some of ${Object.keys(attacks).join(", ")}, received "${name}".\n`);
    return 2;
  }
  const results = [];
  for (const name of wanted) {
    const service = await startService(attacks[name]);
    try {
      results.push(await measured(name, attacks[name], service));
    } finally {
      await service.stop();
    }
    if (values.json) console.log(JSON.stringify(results.at(-1)));
  }
  if (!values.json) print(results);
  return results.every(({ isHeld }) => isHeld) ? 0 : 1;
}

/** One attack on a fresh service: its preparation does not count, what it leaves for two seconds does. */
async function measured(name, { prepare, attack }, service) {
  const prepared = await prepare?.(service);
  await sleep(500);
  const poller = fork(SCRIPT, ["--poll-health", service.url]);
  const latencies = [];
  let isAlive = true;
  poller.on("message", ({ ms, status }) => {
    latencies.push(ms);
    if (status !== 200) isAlive = false;
  });
  await once(poller, "message");
  await sleep(500);
  latencies.length = 0;
  const idle = service.memory();
  let most = idle;
  const sampler = setInterval(() => {
    most = Math.max(most, service.memory());
  }, SAMPLE_MS);
  const since = performance.now();
  const refusal = await withTimeout(attack(service, prepared), PATIENCE_MS).catch((error) => error.message);
  await sleep(2000);
  clearInterval(sampler);
  // one that hangs has told nothing yet
  poller.kill("SIGKILL");
  closeSockets();
  const seconds = (performance.now() - since) / 1000;
  const health = Math.max(0, ...latencies);
  const growth = most - idle;
  const problems = [
    ...(typeof refusal === "string" ? [refusal] : []),
    ...(isAlive && latencies.length > 0 ? [] : ["/health did not answer"]),
    ...(health <= LONGEST_HEALTH_MS ? [] : [`/health over ${LONGEST_HEALTH_MS} ms`]),
    ...(growth <= MOST_GROWTH_BYTES ? [] : ["over 300 MiB"]),
  ];
  return {
    attack: name,
    health_ms: Math.round(health),
    polls: latencies.length,
    idle_mib: Math.round(idle / 2 ** 20),
    growth_mib: Math.round(growth / 2 ** 20),
    seconds: Math.round(seconds * 10) / 10,
    isHeld: problems.length === 0,
    problems,
  };
}

function allAttacks() {
  const oneRun = (service) => service.run(`events ${EVENTS} 1500`);
  return {
    // tells how busy the machine is
    nothing: { attack: () => sleep(2000) },
    headers: { attack: hostileHeaders },
    texts: {
      rendersGraph: true,
      // threads and their caches are no attack
      prepare: (service) => Promise.all(Array.from({ length: 8 }, (_, i) => service.run(`a quiet lake ${i}`))),
      attack: hostileTexts,
    },
    readers: {
      prepare: oneRun,
      attack: async (service, { stream_url }) => {
        const answers = await Promise.all(Array.from({ length: 5 }, () => service.get(stream_url)));
        for (const text of answers.map(({ text }) => text)) {
          const last = [...text.matchAll(/^id: (\d+)$/gm)].length;
          if (last !== EVENTS) return `a reader got ${last} events`;
        }
      },
    },
    "paused-readers": {
      prepare: (service) => Promise.all(Array.from({ length: 300 / READERS_PER_RUN }, () => oneRun(service))),
      attack: async (service, runs) => {
        for (const { stream_url } of runs) {
          for (let i = 0; i < READERS_PER_RUN; i++) service.pausedSocket(get(stream_url));
        }
        await sleep(8000);
      },
    },
    pipelining: {
      attack: async (service) => {
        const requests = get("/openapi.json").repeat(1500);
        for (const end = performance.now() + 5000; performance.now() < end; await sleep(250)) {
          for (let i = 0; i < 40; i++) service.pausedSocket(requests);
        }
      },
    },
    "pipelining-few": {
      attack: async (service) => {
        const sockets = Array.from({ length: 40 }, () => service.pausedSocket(""));
        for (const end = performance.now() + 5000; performance.now() < end; await sleep(20)) {
          for (const socket of sockets)
            if (socket.writable && !socket.writableNeedDrain) socket.write(get("/openapi.json").repeat(20));
        }
      },
    },
    downloads: {
      prepare: (service) => service.run(`file ${64 * 2 ** 20}`),
      attack: async (service, { run_id }) => {
        const request = get(`/api/runs/${run_id}/files/${run_id}.bin`, [AUTH]);
        for (let i = 0; i < 300; i++) service.pausedSocket(request);
        await sleep(5000);
      },
    },
    wakes: { attack: manyWakes },
  };
}

/** As long as Node takes them, in each of the headers that the service looks at. */
async function hostileHeaders(service) {
  const blanks = " \t".repeat(8000);
  for (const header of [
    `Authorization: Bearer${blanks}x`,
    `Authorization: x${blanks}x`,
    `x-compat-token: x${blanks}x`,
    `Content-Type: application/json;${blanks}charset${blanks.slice(0, 1000)}x`,
    `Content-Encoding: gzip${blanks}x`,
    `Accept: ${`"${"\\".repeat(7000)}`}${",".repeat(7000)}`,
    `Accept: a;q${blanks}x`,
    `X-Forwarded-For: ${blanks}x`,
    `Idempotency-Key: x${blanks}x`,
    `Last-Event-ID: ${"1".repeat(15_000)}x`,
    `Last-Event-ID: 1${blanks}x`,
  ]) {
    const isAuth = /^(auth|x-compat)/i.test(header);
    const headers = [
      header,
      ...(isAuth ? [] : [AUTH]),
      ...(/^content-type/i.test(header) ? [] : ["Content-Type: application/json"]),
    ];
    await inLanes(8, 64, () => service.send(post("/hooks/agent", headers, '{"message":" "}')));
    await inLanes(8, 16, () => service.send(get("/api/stream?run_id=x", headers)));
  }
}

/** Messages on which a careless expression would work for minutes: they run on the example graph of the package. */
async function hostileTexts(service) {
  const texts = [
    `{{${BLANKS}`,
    "{{".repeat(50_000),
    `${"9".repeat(100_000)}x`,
    `{"message": ${"9".repeat(100_000)}x`,
    `{"message": -${"9".repeat(50_000)}.${"9".repeat(50_000)}ex}`,
    `${BLANKS}x`,
    `System event: ${BLANKS}\n`,
    "System event: x\n".repeat(6000),
    "(".repeat(100_000),
    `${":1.".repeat(30_000)}`,
    "[".repeat(100_000),
    '{"a":'.repeat(20_000),
  ];
  for (const message of texts) {
    const { status, text } = await service.post("/hooks/agent", { message });
    if (status !== 200) return `a text was answered ${status}`;
    const { status_url } = JSON.parse(text);
    const isDone = async () => JSON.parse((await service.get(status_url, [AUTH])).text).done;
    for (const since = performance.now(); !(await isDone()); await sleep(20)) {
      if (performance.now() - since > 5000)
        return `a run was busy for 5 s with ${JSON.stringify(message.slice(0, 20))}`;
    }
  }
}

/** The largest wakes until they are refused, then what tells of runs. */
async function manyWakes(service) {
  const body = JSON.stringify({ text: "x".repeat(131_000), mode: "next-heartbeat" });
  let isRefused = false;
  await inLanes(4, 4000, async () => {
    if (isRefused) return;
    const { status } = await service.send(post("/hooks/wake", [AUTH, "Content-Type: application/json"], body));
    if (status === 429) isRefused = true;
  });
  const started = await service.post("/hooks/agent", { message: "events 2 1" });
  const { run_id } = JSON.parse(started.text);
  await inLanes(4, 100, () => service.get(`/api/runs/${run_id}`, [AUTH]));
  await inLanes(4, 100, () => service.get("/api/runs?limit=200", [AUTH]));
  if (!isRefused) return "no wake was refused";
}

/** `count` calls, `lanes` of them at once. */
async function inLanes(lanes, count, call) {
  let left = count;
  const lane = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

const sockets = new Set();

function closeSockets() {
  for (const socket of sockets) socket.destroy();
}

async function startService({ rendersGraph = false }) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-attack-"));
  writeFileSync(join(folder, "agent.mjs"), AGENT);
  const config = {
    port: 0,
    store: `sqlite:${join(folder, "attack.db")}`,
    output_dir: join(folder, "out"),
    // else the example graph of the package
    ...(rendersGraph ? {} : { agent: { module: join(folder, "agent.mjs") } }),
    channels: { web: { hooks_token: TOKEN } },
    // one rendering thread, whatever the machine
    limits: rendersGraph ? { running: 1 } : { running_per_session: 4 },
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const child = spawn(
    process.execPath,
    [join(ROOT, "bin/latentkit.mjs"), "serve", "--config", join(folder, "config.json"), "--json", "--quiet"],
    { stdio: ["ignore", "pipe", "pipe"], cwd: folder },
  );
  child.stderr.resume();
  const url = await withTimeout(
    new Promise((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`the service ended with code ${code} before it listened`)));
      createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line).url));
    }),
    PATIENCE_MS,
  );
  const port = Number(new URL(url).port);
  const send = (text) => request(port, text);
  const service = {
    url,
    send,
    get: (path, headers = []) => send(get(path, [...headers, "Connection: close"])),
    post: (path, body) =>
      send(post(path, [AUTH, "Content-Type: application/json", "Connection: close"], JSON.stringify(body))),
    /** A finished run. */
    async run(message) {
      const run = JSON.parse((await service.post("/hooks/agent", { message })).text);
      for (;;) {
        const { done } = JSON.parse((await service.get(run.status_url, [AUTH])).text);
        if (done) return run;
        await sleep(50);
      }
    },
    /** A client that writes and never reads. */
    pausedSocket(text) {
      const socket = open(port).pause();
      socket.write(text);
      return socket;
    },
    /** Resident bytes of the service. */
    memory: () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) * 1024,
    async stop() {
      closeSockets();
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return service;
}

const lines = (first, headers, body) =>
  [`${first} HTTP/1.1`, "Host: 127.0.0.1", ...headers, `Content-Length: ${Buffer.byteLength(body)}`, "", body].join(
    "\r\n",
  );
const post = (path, headers, body) => lines(`POST ${path}`, headers, body);
const get = (path, headers = []) => [`GET ${path} HTTP/1.1`, "Host: 127.0.0.1", ...headers, "", ""].join("\r\n");

function open(port) {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  sockets.add(socket.once("close", () => sockets.delete(socket)));
  return socket;
}

/** One request on a connection of its own, until the service closes it or the answer is in by its length. */
async function request(port, text) {
  const socket = open(port);
  socket.write(text);
  const chunks = [];
  let head;
  for await (const chunk of socket) {
    chunks.push(chunk);
    head ??= headOf(chunks);
    const length = Number(/^content-length: (\d+)$/im.exec(head ?? "")?.[1] ?? Number.NaN);
    if (Buffer.byteLength(head ?? "", "latin1") + length <= chunks.reduce((sum, part) => sum + part.length, 0)) break;
  }
  socket.destroy();
  const answer = Buffer.concat(chunks);
  const split = answer.indexOf("\r\n\r\n");
  return { status: Number(answer.toString("latin1", 9, 12)), text: answer.toString("utf8", split + 4) };
}

function headOf(chunks) {
  const text = Buffer.concat(chunks).toString("latin1");
  const end = text.indexOf("\r\n\r\n");
  return end < 0 ? undefined : text.slice(0, end + 4);
}

function withTimeout(work, ms) {
  const late = sleep(ms, undefined, { ref: false }).then(() => {
    throw new Error(`it took longer than ${ms / 1000} s`);
  });
  return Promise.race([work, late]);
}

function print(results) {
  const rows = [["attack", "/health at most", "memory", "grew by", "took", ""]];
  for (const { attack, health_ms, idle_mib, growth_mib, seconds, problems } of results) {
    const verdict = problems.length === 0 ? "holds" : problems.join("; ");
    rows.push([attack, `${health_ms} ms`, `${idle_mib} MiB`, `${growth_mib} MiB`, `${seconds} s`, verdict]);
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    );
}

if (process.argv[2] === "--poll-health") await pollHealth(process.argv[3]);
else process.exitCode = await main();
