#!/usr/bin/env node
// Costs of the hook service, on this machine, over loopback, in about a minute:
//   node bench/hooks.mjs
// Starts per second with a durable store, the memory store and a bare Express route; 1,000 open streams with broadcasts
// and memory for each; /health while batches of 2,048 x 2,048 pictures render. Servers run in processes of their own.
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const TOKEN = randomUUID();
const CONNECTIONS = 32;
const START_SECONDS = 4;
const STREAMS = 1000;
const BROADCASTS = 20;
const HEALTH_SECONDS = 8;
const HEALTH_EVERY_MS = 5;
const PICTURE = { size: 2048, batch: 4, runs: 2 };

const UNLIMITED = {
  starts_per_10s: 1e9,
  session_starts_per_10s: 1e9,
  queued: 1e6,
  queued_per_session: 1e6,
  running: 64,
  running_per_session: 64,
  streams: 2 * STREAMS,
  streams_per_run: 2 * STREAMS,
};

// ---- servers: each in a process of its own, which the last line of this file starts ----

const agents = {
  nothing: () => async () => ({ response: "" }),
  // emits what the parent asks for
  broadcasts:
    () =>
    (_, { signal, emit }) =>
      new Promise((resolve) => {
        process.on("message", (beat) => (beat === "end" ? resolve({ response: "" }) : emit("beat", { beat })));
        signal.addEventListener("abort", () => resolve({ response: "" }));
      }),
  pictures: async (folder) => {
    const { createGraphAgent } = await import("latentkit/hooks");
    const { size, batch, runs } = PICTURE;
    const graph = {
      1: {
        class_type: "ext pipeLoader",
        inputs: {
          ckpt_name: "preview-sd15.safetensors",
          positive: "{{message}}",
          negative: "",
          batch_size: batch,
          empty_latent_width: size,
          empty_latent_height: size,
          steps: 20,
        },
      },
      2: {
        class_type: "ext latentNoisy",
        inputs: {
          sampler_name: "euler",
          scheduler: "karras",
          steps: 20,
          start_at_step: 12,
          end_at_step: 20,
          source: "CPU",
          seed: "{{seed}}",
          pipe: ["1", 0],
        },
      },
      3: { class_type: "VAEDecode", inputs: { samples: ["2", 1], vae: ["1", 2] } },
      4: { class_type: "SaveImage", inputs: { images: ["3", 0], filename_prefix: "bench" } },
    };
    return createGraphAgent({ graph, outputDir: folder, threads: Math.min(runs, availableParallelism()) });
  },
};

async function startServer(kind, agentName, folder) {
  if (kind === "bare") return startBare();
  const { createHookService, createMemoryStore, createSqliteStore } = await import("latentkit/hooks");
  const { createLogger, createServer } = await import("latentkit/service");
  const logger = createLogger({ level: "silent" });
  const store = kind === "sqlite" ? createSqliteStore(join(folder, "bench.db")) : createMemoryStore();
  const agent = await agents[agentName](folder);
  const config = { hooks_token: process.env.BENCH_TOKEN, limits: UNLIMITED };
  const hooks = createHookService({ agent, store, config, logger });
  const { url } = await createServer({ hooks, port: 0, limits: UNLIMITED, logger }).listen();
  return url;
}

async function startBare() {
  const { default: express } = await import("express");
  const app = express().use(express.json());
  app.post("/hooks/agent", (_req, res) => res.json({ ok: true, run_id: randomUUID() }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return `http://127.0.0.1:${port}`;
}

// ---- clients ----

const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };

async function withServer(kind, agentName, work) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-bench-"));
  const env = { ...process.env, BENCH_TOKEN: TOKEN };
  const child = fork(fileURLToPath(import.meta.url), ["--server", kind, "--agent", agentName, "--folder", folder], {
    env,
    execArgv: ["--expose-gc"],
  });
  try {
    const [{ url }] = await once(child, "message");
    return await work(url, child);
  } finally {
    child.kill("SIGKILL");
    await once(child, "close");
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Sends one HTTP request and returns the response's text. `onText` gets each part of it.
 *
 * @param {Agent} agent
 * @param {string} url
 * @param {{ method?: string, body?: string, onText?: (text: string) => void }} [options]
 * @returns {Promise<string>}
 */
function call(agent, url, { method = "GET", body, onText = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => {
        text += part;
        onText(part);
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${method} ${url}: ${response.statusCode} ${text}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const start = async (agent, url, message) =>
  JSON.parse(await call(agent, `${url}/hooks/agent`, { method: "POST", body: JSON.stringify({ message }) }));

async function startsPerSecond(kind) {
  return withServer(kind, "nothing", async (url) => {
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    let count = 0;
    const run = async (seconds) => {
      const until = performance.now() + seconds * 1000;
      const client = async () => {
        for (; performance.now() < until; count++) await start(agent, url, "x");
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, client));
    };
    await run(1);
    count = 0;
    const began = performance.now();
    await run(START_SECONDS);
    const rate = count / ((performance.now() - began) / 1000);
    agent.destroy();
    return rate;
  });
}

/** Reads a stream over a socket; `onBeat` is called at each broadcast. */
async function openStream(url, path, onBeat) {
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.setEncoding("latin1");
  let rest = "";
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  socket.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("event: replay_meta")) open();
      else if (line.startsWith("event: beat")) onBeat();
    }
  });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.Authorization}\r\n\r\n`);
  await opened;
  return socket;
}

async function memoryOf(child) {
  child.send("memory");
  const [{ rss }] = await once(child, "message");
  return rss;
}

async function streams() {
  return withServer("sqlite", "broadcasts", async (url, child) => {
    const agent = new Agent({ keepAlive: true });
    const { stream_url: path } = await start(agent, url, "x");
    let heard = 0;
    /** @type {(value?: unknown) => void} */
    let allHeard = () => {};
    const onBeat = () => {
      heard++;
      if (heard === STREAMS) allHeard();
    };
    const warm = await openStream(url, path, () => {});
    const before = await memoryOf(child);
    const sockets = [];
    for (let opened = 0; opened < STREAMS; opened += 100) {
      sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => openStream(url, path, onBeat)))));
    }
    await sleep(500);
    const perStream = ((await memoryOf(child)) - before) / STREAMS;
    const times = [];
    for (let beat = 0; beat < BROADCASTS; beat++) {
      heard = 0;
      const done = new Promise((resolve) => {
        allHeard = resolve;
      });
      const began = performance.now();
      child.send(beat);
      await done;
      times.push(performance.now() - began);
    }
    for (const socket of [warm, ...sockets]) socket.destroy();
    agent.destroy();
    return { perStream, times };
  });
}

async function health() {
  return withServer("sqlite", "pictures", async (url) => {
    const agent = new Agent({ keepAlive: true });
    const measure = async (isOver) => {
      const times = [];
      while (!isOver()) {
        const began = performance.now();
        await call(agent, `${url}/health`);
        times.push(performance.now() - began);
        await sleep(HEALTH_EVERY_MS);
      }
      return times;
    };
    const after = (seconds) => {
      const until = performance.now() + seconds * 1000;
      return () => performance.now() > until;
    };
    await measure(after(1));
    const idle = await measure(after(2));
    const began = performance.now();
    const firsts = [];
    let pictures = 0;
    const isTime = after(HEALTH_SECONDS);
    const render = async (lane) => {
      for (let k = 0; !isTime() || k === 0; k++) {
        const { stream_url: path } = await start(agent, url, JSON.stringify({ message: "x", seed: 1000 * lane + k }));
        const posted = performance.now();
        let first;
        const onText = (part) => {
          if (part.includes("event: node_start")) first ??= performance.now() - posted;
        };
        const text = await call(new Agent(), url + path, { onText });
        firsts.push(first);
        if (!text.includes("event: done")) throw new Error(`a run failed: ${text.slice(-500)}`);
        pictures += PICTURE.batch;
      }
    };
    let isDone = false;
    const lanes = Array.from({ length: PICTURE.runs }, (_, lane) => render(lane));
    const rendering = Promise.all(lanes).finally(() => {
      isDone = true;
    });
    const busy = await measure(() => isDone);
    await rendering;
    const seconds = (performance.now() - began) / 1000;
    agent.destroy();
    return { idle, busy, firsts, pictures, seconds };
  });
}

// ---- report ----

const percentile = (times, share) => [...times].sort((a, b) => a - b)[Math.floor(share * (times.length - 1))];
const ms = (time) => `${time.toFixed(1)} ms`;
const spread = (times) =>
  `p50 ${ms(percentile(times, 0.5))}, p99 ${ms(percentile(times, 0.99))}, max ${ms(percentile(times, 1))} (${times.length} calls)`;
const print = (name, value) => console.log(`${name.padEnd(34)} ${value}`);

async function main() {
  console.log(`${cpus()[0].model}, ${availableParallelism()} processors, Node ${process.versions.node}\n`);
  const bare = await startsPerSecond("bare");
  for (const [name, kind] of [
    ["SQLite, on disk before the response", "sqlite"],
    ["memory store", "memory"],
  ]) {
    const rate = await startsPerSecond(kind);
    print(`starts/s, ${name}`, `${rate.toFixed(0)} (${(rate / bare).toFixed(2)} of the bare route)`);
  }
  print("starts/s, bare Express route", `${bare.toFixed(0)} (no token, no store, no run)`);
  const { perStream, times } = await streams();
  print(`${STREAMS} streams, memory each`, `${(perStream / 1024).toFixed(1)} KiB`);
  print(`${STREAMS} streams, event to the last`, spread(times));
  const { idle, busy, firsts, pictures, seconds } = await health();
  print("/health, idle", spread(idle));
  print("/health, rendering", spread(busy));
  print("first node on a stream, rendering", spread(firsts));
  print(`${PICTURE.size} x ${PICTURE.size} pictures meanwhile`, `${pictures} in ${seconds.toFixed(1)} s`);
}

const { values } = parseArgs({
  options: { server: { type: "string" }, agent: { type: "string" }, folder: { type: "string" } },
});
if (values.server === undefined) await main();
else {
  process.on("message", (message) => {
    if (message !== "memory") return;
    globalThis.gc?.();
    process.send?.({ rss: process.memoryUsage().rss });
  });
  process.send?.({ url: await startServer(values.server, values.agent, values.folder) });
}
