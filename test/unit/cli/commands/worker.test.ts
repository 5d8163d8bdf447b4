import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { temporaryFolder } from "../../../helpers/folders.js";
import { until } from "../../../helpers/hooks/hook-runs.js";
import { newDatabase, postgres } from "../../../helpers/postgres/cluster.js";
import { latentkit } from "../../../helpers/process/cli.js";
import { program } from "../../../helpers/process/package.js";
import { get, type RunPayload, type Serving, serve, start } from "../../../helpers/process/serve.js";

const AGENT = `
  export default async ({ message }, { signal, emit }) => {
    emit("delta", { delta: message });
    const ms = Number(/[0-9]+/.exec(message)?.[0] ?? 0);
    await new Promise((resolve) => { setTimeout(resolve, ms); signal.addEventListener("abort", resolve); });
    signal.throwIfAborted();
    return { response: message.toUpperCase() };
  };
`;

const streamOf = async ({ url }: Serving, { stream_url }: RunPayload) => (await get(url + stream_url)).text();

interface Working {
  readonly child: ChildProcess;
  readonly output: () => string;
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

describe("latentkit worker", () => {
  postgres();
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  const config = () => {
    writeFileSync(join(folder(), "agent.mjs"), AGENT);
    const path = join(folder(), "c.json");
    const limits = { lease_seconds: 3, drain_seconds: 1 };
    writeFileSync(path, JSON.stringify({ agent: { module: "./agent.mjs" }, limits }));
    return ["--config", path];
  };
  const front = async (store: string): Promise<Serving> => {
    const service = await serve([...config(), "--store", store, "--no-render"], { cwd: folder() });
    children.push(service.child);
    return service;
  };
  const work = async (store: string, ...args: string[]): Promise<Working> => {
    const command = [program(), "worker", "--json", "--store", store, ...config(), ...args];
    const child = spawn(process.execPath, command, { cwd: folder(), stdio: ["ignore", "pipe", "pipe"] });
    children.push(child);
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (text += part));
    await until(() => text.includes('{"type":"working"'), "the worker");
    const ended = once(child, "close");
    const stop = async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await ended;
      return child.exitCode;
    };
    return { child, output: () => text, stop };
  };
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });

  it("runs what front ends take; both end with 0 on SIGTERM, and a run that does not end is given up @long", async () => {
    const store = await newDatabase();
    const service = await front(store);
    const worker = await work(store, "--concurrency", "2", "--port", "0");
    const { url } = JSON.parse(/\{"type":"working".*\}/.exec(worker.output())![0]) as { url: string };
    const probe = async (path: string) => (await fetch(url + path)).status;
    assert.deepEqual(
      await Promise.all(["/health", "/ready", "/api/runs", "/openapi.json"].map(probe)),
      [200, 200, 404, 404],
    );
    const run = await start(service.url, { message: "a fox" });
    assert.match(await streamOf(service, run), /event: done\ndata: \{"response":"A FOX"\}/);
    const endless = await start(service.url, { message: "wait 600000" });
    await until(() => worker.output().split("run started").length > 2, "the start");
    const metrics = await (await fetch(`${url}/metrics`)).text();
    assert.match(metrics, /^latentkit_runs_finished_total\{state="succeeded"\} 1$/m);
    assert.match(metrics, /^latentkit_runs_running 1$/m);
    assert.match(metrics, /^latentkit_leases_lost_total\{fate="requeued"\} 0$/m);
    assert.equal(await worker.stop("SIGTERM"), 0);
    assert.match(worker.output(), /\{"type":"stopped"\}/);
    const state = await (await get(service.url + endless.status_url)).text();
    assert.match(state, /"status":"queued"/);
    assert.equal(await service.stop("SIGTERM"), 0);
  });

  it("takes the runs of a worker that was killed @long", async () => {
    const store = await newDatabase();
    const service = await front(store);
    const first = await work(store);
    const run = await start(service.url, { message: "wait 1500" });
    await until(() => first.output().includes("run started"), "the start");
    await first.stop("SIGKILL");
    const second = await work(store, "--port", "0");
    const { url } = JSON.parse(/\{"type":"working".*\}/.exec(second.output())![0]) as { url: string };
    const text = await streamOf(service, run);
    assert.equal(text.split("event: status").length, 3);
    assert.match(text, /event: done/);
    assert.match(await (await fetch(`${url}/metrics`)).text(), /^latentkit_leases_lost_total\{fate="requeued"\} 1$/m);
  });

  it("needs a PostgreSQL store, as serve --no-render does @long", async () => {
    const worker = await latentkit(["worker", "--store", "memory:"], { cwd: folder() });
    assert.equal(worker.code, 3);
    assert.match(worker.stderr, /store: expected postgres:\/\/…, which workers share\./);
    const serving = await latentkit(["serve", "--no-render", "--store", "memory:"], { cwd: folder() });
    assert.equal(serving.code, 3);
    assert.match(serving.stderr, /store: "render": false needs a postgres:\/\/ store\./);
    const wrong = await latentkit(["worker", "--concurrency", "0"], { cwd: folder() });
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /--concurrency: expected 1 to 9999, received "0"\./);
    const busy = createServer().listen(0, "127.0.0.1");
    await once(busy, "listening");
    const { port } = busy.address() as AddressInfo;
    const second = await latentkit(["worker", "--store", await newDatabase(), "--port", String(port)], {
      cwd: folder(),
    });
    busy.close();
    assert.equal(second.code, 3);
    assert.match(second.stderr, /Cannot listen on 127\.0\.0\.1, port \d+: the port is already in use \(EADDRINUSE\)/);
  });
});
