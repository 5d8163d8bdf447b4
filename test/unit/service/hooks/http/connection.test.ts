import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import express from "express";
import { createHookService } from "latentkit/hooks";
import { createLogger } from "latentkit/service";
import type { Agent } from "#src/service/agent/agent.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { scriptedAgent, serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { RawClient, requestText } from "../../../../helpers/http/raw-http.js";

const startService = serviceStarter();
const folder = temporaryFolder();

const openApi = requestText("GET /openapi.json", []);
const AUTH = `Authorization: Bearer ${TOKEN}`;

function pausedClient(port: number): RawClient {
  const client = new RawClient(port);
  client.socket.pause();
  return client;
}

describe("pipelined requests", () => {
  it("are handled in order, one after the other", async () => {
    const { port } = await startService();
    const paths = ["/health", "/nothing", "/ready", "/api/runs", "/health"];
    const client = new RawClient(port).send(paths.map((path) => requestText(`GET ${path}`, [])).join(""));
    const statuses = () => [...client.text.matchAll(/HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
    await until(() => statuses().length === paths.length);
    assert.deepEqual(statuses(), [200, 404, 200, 401, 200]);
    client.destroy();
  });

  it("64 are handled, the 65th ends the connection", async () => {
    const { port, get } = await startService();
    const polite = new RawClient(port).send(openApi.repeat(64));
    await until(() => polite.text.match(/HTTP\/1\.1 200/gm)?.length === 64, "64 responses");
    polite.destroy();
    const greedy = new RawClient(port).send(openApi.repeat(1000));
    await greedy.closed;
    assert.ok((greedy.text.match(/HTTP\/1\.1 200/gm)?.length ?? 0) <= 64);
    assert.equal((await get("/health")).status, 200);
  });

  it("with unread responses take little memory and delay nobody @alone", async () => {
    const { port, get } = await startService();
    await get("/openapi.json");
    const before = process.memoryUsage();
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const clients = Array.from({ length: 40 }, () => pausedClient(port));
    for (let round = 0; round < 10; round++) {
      for (const { socket } of clients) if (!socket.destroyed) socket.write(openApi.repeat(30));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal((await get("/health")).status, 200);
    delay.disable();
    const after = process.memoryUsage();
    for (const client of clients) client.destroy();
    const held = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    assert.ok(held < 100_000_000, `${held} bytes`);
    assert.ok(delay.max / 1e6 < 250, `${delay.max / 1e6} ms in one turn`);
  });

  it("of a client that leaves are not handled", async () => {
    const { port, hooks, start, get } = await startService();
    const { stream_url } = await start("hold");
    const body = '{"message":"x"}';
    const post = requestText("POST /hooks/agent", [AUTH, "Content-Type: application/json"], body);
    const client = new RawClient(port).send(requestText(`GET ${stream_url}`, []) + post);
    await until(() => client.text.includes("replay_meta"));
    client.destroy();
    await until(async () => /latentkit_streams_open 0/.test(await (await get("/metrics")).text()));
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 1);
  });

  it("end with their connection, after at most 1,000", async () => {
    const { port, listening } = await startService();
    assert.equal(listening.server.maxRequestsPerSocket, 1000);
    listening.server.maxRequestsPerSocket = 20;
    const client = new RawClient(port).send(openApi.repeat(20));
    await until(() => client.text.match(/HTTP\/1\.1 200/g)?.length === 20, "20 responses");
    client.destroy();
    assert.equal(client.text.match(/^Connection: close/gm)?.length, 1);
  });
});

describe("responses that nobody reads", () => {
  const large = "x".repeat(12_000_000);
  const agent: Agent = async (_run, { addFile }) => {
    const path = join(folder(), "large.txt");
    writeFileSync(path, large);
    return { response: addFile({ path }).url };
  };
  const config = { hooks_token: TOKEN, limits: { slow_reader_seconds: 1 } };

  async function finished(url: string) {
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const started = await fetch(`${url}/hooks/agent`, { method: "POST", headers, body: '{"message":"x"}' });
    const { run_id } = (await started.json()) as { run_id: string };
    let response: string | null = null;
    await until(async () => {
      const status = await fetch(`${url}/api/runs/${run_id}`, { headers });
      response = ((await status.json()) as { response: string | null }).response;
      return response !== null;
    });
    return { run_id, fileUrl: `/api/runs/${run_id}/files/large.txt` };
  }

  const connections = (server: Server) =>
    new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));

  async function assertCut(server: Server, path: string, mount = "") {
    const { port } = server.address() as AddressInfo;
    server.closeIdleConnections();
    await until(async () => (await connections(server)) === 0, "no connections");
    const client = pausedClient(port).send(requestText(`GET ${mount}${path}`, [AUTH]));
    await until(async () => (await connections(server)) === 1, "the connection");
    await until(async () => (await connections(server)) === 0, "the cut");
    client.destroy();
  }

  it("a stalled download is cut", async () => {
    const { listening, url } = await startService({ agent, config });
    await assertCut(listening.server, (await finished(url)).fileUrl);
  });

  it("a stalled JSON response is cut", async () => {
    const { listening, url } = await startService({ agent: async () => ({ response: large }), config });
    await assertCut(listening.server, `/api/runs/${(await finished(url)).run_id}`);
  });

  it("both are cut in another application too", async () => {
    const logger = createLogger({ level: "silent" });
    const hooks = createHookService({ agent, config, logger });
    const server = createServer(express().use("/automation", hooks.router)).listen(0, "127.0.0.1");
    await until(() => server.listening);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/automation`;
    await assertCut(server, (await finished(url)).fileUrl, "/automation");
    await hooks.close(0);
    server.close();
  });

  it("pipelined requests are limited in another application too", async () => {
    const logger = createLogger({ level: "silent" });
    const hooks = createHookService({ agent: scriptedAgent, config, logger });
    const server = createServer(express().use(hooks.router)).listen(0, "127.0.0.1");
    await until(() => server.listening);
    const client = new RawClient((server.address() as AddressInfo).port).send(openApi.repeat(1000));
    await client.closed;
    assert.ok((client.text.match(/HTTP\/1\.1 200/gm)?.length ?? 0) <= 64);
    await hooks.close(0);
    server.close();
  });
});
