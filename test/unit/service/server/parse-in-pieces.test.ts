import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { serviceStarter, TOKEN, until } from "../../../helpers/hooks/hook-service.js";
import { RawClient, requestText } from "../../../helpers/http/raw-http.js";

const startService = serviceStarter();

const health = requestText("GET /health", []);

describe("many requests in one read", () => {
  it("2,500 requests of a cut connection are not all parsed", async () => {
    const { port, listening, get } = await startService();
    let requests = 0;
    listening.server.on("request", () => {
      requests += 1;
    });
    const client = new RawClient(port).send("GET / HTTP/1.1\r\nHost:a\r\n\r\n".repeat(2500));
    await client.closed;
    assert.ok(requests < 200, `${requests} requests`);
    assert.equal((await get("/health")).status, 200);
  });

  it("40 connections with 1,500 requests each delay nobody @alone", async () => {
    const { port, get } = await startService();
    await get("/openapi.json");
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const text = requestText("GET /openapi.json", []).repeat(1500);
    const clients = Array.from({ length: 40 }, () => new RawClient(port).send(text));
    await Promise.all(clients.map(({ closed }) => closed));
    delay.disable();
    assert.ok(delay.max / 1e6 < 250, `${delay.max / 1e6} ms in one turn`);
  });

  it("a request and its body are complete, wherever the pieces end", async () => {
    const { port, hooks } = await startService();
    const headers = [`Authorization: Bearer ${TOKEN}`, "Content-Type: application/json"];
    const messages = [1900, 2048, 4000, 100_000].map((length) => "m".repeat(length));
    const posts = messages.map((message) => requestText("POST /hooks/agent", headers, JSON.stringify({ message })));
    const client = new RawClient(port).send(posts.join("") + health);
    await until(() => client.text.includes('"alive"'));
    client.destroy();
    const { runs } = await hooks.runs.list({ limit: 10 });
    const rows = await Promise.all(runs.map(({ id }) => hooks.runs.get(id)));
    assert.deepEqual(
      rows.map(({ message }) => message.length).reverse(),
      messages.map(({ length }) => length),
    );
  });

  for (const [what, text] of [
    ["a proxy's CONNECT", requestText("CONNECT example.com:443", [])],
    ["a broken request", "GET / HTTP/9.9\r\n\r\n"],
  ] as const) {
    it(`${what} gets one response, whatever follows it`, async () => {
      const { port, get } = await startService();
      const client = new RawClient(port).send(health + text + health.repeat(500));
      await until(() => client.text.includes(" 400 "));
      client.destroy();
      assert.equal(client.text.match(/HTTP\/1\.1 400/g)?.length, 1);
      assert.equal((await get("/health")).status, 200);
    });
  }
});
