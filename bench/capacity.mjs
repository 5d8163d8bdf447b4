#!/usr/bin/env node
// Costs of one run of the hook service, and what they add up to, on this machine, in about a minute and a half:
//   node bench/capacity.mjs [--store postgres://… [--database-pid PID]] [--seconds 30] [--rate 10000]
// Runs without a render, 10,000 a minute, arrive whether or not the service keeps up, and cost the service; and the database
// whose first process, on this machine, has that id. The example graph costs a rendering thread. Costs are processor time,
// which other work on the machine hardly changes; the times that clients see are those of a machine with nothing else to do.
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const GRAPH = fileURLToPath(new URL("../examples/hook.json", import.meta.url));
const TOKEN = "capacity-capacity-capacity";
const RATES = [60, 600, 3000, 10_000];
const RENDERS = 30;
/** Events of a run: about those of a graph of eight nodes with a sampler of twenty steps. */
const NODES = 8;
const STEPS = 20;
/** Share of a processor that may be planned with. */
const FULL = 0.7;

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    seconds: { type: "string", default: "30" },
    rate: { type: "string", default: "10000" },
    "database-pid": { type: "string" },
    server: { type: "string" },
  },
});

const perMinute = Number(values.rate);

const eventful = async (_run, { emit }) => {
  for (let node = 1; node <= NODES; node++) {
    emit("node_start", { node: String(node), class_type: "KSampler" });
    if (node === 4) for (let value = 1; value <= STEPS; value++) emit("progress", { value, max: STEPS, node: "4" });
    emit("node_done", { node: String(node), class_type: "KSampler", ms: 1.5, done: node, nodes: NODES });
  }
  return { response: "[]" };
};

/** Serves until it is killed; answers every message with the processor time so far, in ms. */
async function serve(folder) {
  const { createHookService, createSqliteStore } = await import("latentkit/hooks");
  const { createPostgresStore } = await import("latentkit/postgres");
  const { createLogger, createServer } = await import("latentkit/service");
  const logger = createLogger({ level: "silent" });
  const limits = { starts_per_10s: 1e9, session_starts_per_10s: 1e9, queued: 1e6, queued_per_session: 1e6 };
  const store =
    values.store === "sqlite"
      ? createSqliteStore(join(folder, "bench.db"))
      : createPostgresStore({ url: values.store, schema: `capacity_${process.pid}` });
  const hooks = createHookService({
    agent: eventful,
    store,
    logger,
    config: { hooks_token: TOKEN, limits: { ...limits, running: 64, running_per_session: 64 } },
  });
  const { url } = await createServer({ hooks, port: 0, limits, logger }).listen();
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1000);
  });
  process.send?.(url);
}

/** Costs of the service per run, without a render: `cpuMs`, and what its clients see. */
async function measureService(seconds) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-capacity-"));
  const child = fork(fileURLToPath(import.meta.url), ["--server", folder, "--store", values.store]);
  const agent = new Agent({ keepAlive: true, maxSockets: 512 });
  try {
    const [url] = await once(child, "message");
    const cpu = async () => {
      child.send("cpu");
      return (await once(child, "message"))[0];
    };
    const start = async () => {
      const since = performance.now();
      await post(agent, `${url}/hooks/agent`, JSON.stringify({ message: "x" }));
      return performance.now() - since;
    };
    const metric = async (pattern) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(pattern.exec(text)?.[1] ?? 0);
    };
    const ended = () => metric(/^latentkit_runs_finished_total\{state="succeeded"\} (\d+)$/m);
    const arrive = async (count, perSecond) => {
      const began = performance.now();
      const times = [];
      for (let i = 0; i < count; i++) {
        const wait = began + (i / perSecond) * 1000 - performance.now();
        if (wait > 1) await sleep(wait);
        times.push(start());
      }
      return Promise.all(times);
    };
    await arrive(200, 100);
    const perSecond = perMinute / 60;
    const count = Math.round(perSecond * seconds);
    const [before, since, done] = [await cpu(), performance.now(), await ended()];
    const databaseBefore = databaseMs();
    const times = (await arrive(count, perSecond)).sort((a, b) => a - b);
    while ((await ended()) < done + count) await sleep(5);
    const elapsed = (performance.now() - since) / 1000;
    return {
      cpuMs: ((await cpu()) - before) / count,
      databaseMs: (databaseMs() - databaseBefore) / count,
      perSecond: count / elapsed,
      p50: times[Math.floor(times.length * 0.5)],
      p99: times[Math.floor(times.length * 0.99)],
    };
  } finally {
    agent.destroy();
    child.kill("SIGKILL");
    await once(child, "close");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Processor time of the database so far, in ms: of its first process, with those that have ended, and its children. */
function databaseMs() {
  const first = values["database-pid"];
  if (first === undefined) return 0;
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    let fields;
    try {
      fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
    } catch {
      continue; // it has ended
    }
    const own = Number(fields[11]) + Number(fields[12]);
    if (pid === first) ticks += own + Number(fields[13]) + Number(fields[14]);
    else if (fields[1] === first) ticks += own;
  }
  return ticks * 10;
}

function post(agent, url, body) {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
  return new Promise((/** @type {(value?: undefined) => void} */ resolve, reject) => {
    const sent = request(url, { agent, method: "POST", headers }, (response) => {
      response.resume();
      response.on("end", () => (response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`))));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Median time of the example graph on one rendering thread, in ms. */
async function measureRender() {
  const { createGraphAgent } = await import("latentkit/hooks");
  const folder = mkdtempSync(join(tmpdir(), "latentkit-capacity-"));
  const agent = createGraphAgent({ graph: GRAPH, outputDir: folder, threads: 1 });
  const context = { signal: new AbortController().signal, emit: () => {}, addFile: () => ({ name: "", url: "" }) };
  const times = [];
  try {
    for (let i = 0; i < RENDERS + 3; i++) {
      const since = performance.now();
      await agent({ id: randomUUID(), sessionKey: "s", message: `lake ${i}`, name: null }, context);
      if (i >= 3) times.push(performance.now() - since);
    }
  } finally {
    await agent.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

function print(service, renderMs) {
  const processors = (rate, ms) => (rate / 60) * (ms / 1000);
  const threads = (rate, ms) => Math.ceil(processors(rate, ms) / FULL);
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  const lines = [
    `${cpus()[0].model}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}; node ${process.versions.node}; store ${values.store.split(":")[0]}.`,
    `A run costs the service ${service.cpuMs.toFixed(2)} ms of a processor, the database ${service.databaseMs.toFixed(2)} ms. ${perMinute} runs a minute for ${values.seconds} s: ` +
      `${service.perSecond.toFixed(0)} ended a second; a start took ${service.p50.toFixed(1)} ms, p99 ${service.p99.toFixed(1)} ms.`,
    `The example graph takes ${renderMs.toFixed(0)} ms on one thread.`,
    "",
    `| Runs a minute | Service, of one processor | Database, of one processor | Threads for the example graph | for 1 s | for 10 s |`,
    "|---|---|---|---|---|---|",
    ...RATES.map((rate) => {
      const cells = [renderMs, 1000, 10_000].map((ms) => threads(rate, ms).toLocaleString("en"));
      const shares = [service.cpuMs, service.databaseMs].map((ms) => percent(processors(rate, ms)));
      return `| ${rate.toLocaleString("en")} | ${shares.join(" | ")} | ${cells.join(" | ")} |`;
    }),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

if (values.server !== undefined) await serve(values.server);
else print(await measureService(Number(values.seconds)), await measureRender());
