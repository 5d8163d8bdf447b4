import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { classicStarter } from "../../../helpers/hooks/classic-service.js";
import { bearer, serviceStarter, TOKEN, until } from "../../../helpers/hooks/hook-service.js";
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

  it("40 connections with 1,500 requests each do not delay others @alone", async () => {
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

describe("upgrades of a server with a WebSocket", () => {
  const start = classicStarter();

  /** Sends bytes over one connection, and waits for a count of responses. */
  const talk = async (port: number, parts: readonly string[], responses: number) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    for (const part of parts) {
      socket.write(part, "latin1");
      await new Promise((resolve) => setImmediate(resolve));
    }
    const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
    await until(() => statuses().length === responses, "the responses");
    socket.destroy();
    return { statuses: statuses(), text };
  };
  const offer = ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"];
  const request = (method: string, path: string, body = "", more = offer) =>
    [
      `${method} ${path} HTTP/1.1`,
      "Host: 127.0.0.1",
      `Authorization: ${bearer.authorization}`,
      ...more,
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(body)}`,
      "",
      body,
    ].join("\r\n");

  it("an offer of HTTP/2 is ignored, with and without a body, and the connection goes on", async () => {
    const { port } = await start();
    const long = JSON.stringify({ message: "{}", name: "x".repeat(100), tags: ["y".repeat(60)] });
    const whole = request("POST", "/hooks/agent", long);
    const { statuses, text } = await talk(
      port,
      [request("GET", "/api/runs"), whole, request("GET", "/health", "", []), request("GET", "/prompt")],
      4,
    );
    assert.deepEqual(statuses, [200, 200, 200, 200], text);
    const apart = await talk(port, [whole.slice(0, 40), whole.slice(40, -20), whole.slice(-20)], 1);
    assert.deepEqual(apart.statuses, [200], apart.text);
  });

  it("requests behind one another with offers are all answered, once", async () => {
    const { port } = await start();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on("warning", onWarning);
    const requests = Array.from({ length: 40 }, (_, i) => request("POST", "/prompt", `{"x":${i}}`));
    const { statuses } = await talk(port, [requests.join("")], 40);
    assert.deepEqual(statuses, new Array(40).fill(400));
    process.off("warning", onWarning);
    // of listeners that are left behind
    assert.deepEqual(warnings, []);
  });

  it("an offer with each request leaves a connection as many requests as without", async () => {
    const { port, listening } = await start();
    listening.server.maxRequestsPerSocket = 20;
    for (const more of [offer, []]) {
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
      });
      socket.write(request("GET", "/health", "", more).repeat(30));
      await once(socket, "close");
      assert.equal(text.match(/HTTP\/1\.1 200 /g)?.length, 20, text);
      assert.equal(text.match(/^Connection: close/gm)?.length, 1);
    }
  });

  it("an offer of a client that wants the connection closed leaves it so", async () => {
    const { port } = await start();
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.write(request("GET", "/health", "", ["Upgrade: h2c", "Connection: close, Upgrade"]));
    await once(socket, "close");
    assert.match(text, /^HTTP\/1\.1 200 .*^Connection: close/ms);
  });

  it("a WebSocket with two Host headers, or none, is refused", async () => {
    const { port } = await start();
    const websocket = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"];
    const key = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`;
    const open = request("GET", "/ws", "", [...websocket, key]);
    assert.deepEqual((await talk(port, [open], 1)).statuses, [101]);
    for (const [hosts, sentence] of [
      ["Host: 127.0.0.1\r\nHost: other.example", /more than one Host header/],
      ["X-Host: 127.0.0.1", /the Host header is missing/],
    ] as const) {
      const { statuses, text } = await talk(port, [open.replace("Host: 127.0.0.1", hosts)], 1);
      assert.deepEqual(statuses, [400], text);
      assert.match(text, sentence);
    }
  });

  it("another path than that of the WebSocket, and another method, are refused", async () => {
    const { port } = await start();
    const websocket = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"];
    const key = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`;
    const other = await talk(port, [request("GET", "/other", "", [...websocket, key])], 1);
    assert.deepEqual(other.statuses, [404]);
    const post = await talk(port, [request("POST", "/ws", "{}", [...websocket, key])], 1);
    assert.deepEqual(post.statuses, [405]);
    const without = await talk(port, [request("GET", "/ws", "", websocket)], 1);
    assert.deepEqual(without.statuses, [400]);
  });
});
