import assert from "node:assert/strict";
import { connect } from "node:net";
import { createHookService } from "latentkit/hooks";
import { createLogger, createServer } from "latentkit/service";
import { refuses } from "../../../helpers/errors.js";
import { scriptedAgent, serviceStarter, TOKEN, until } from "../../../helpers/hooks/hook-service.js";
import { RawClient, rawRequest, requestText } from "../../../helpers/http/raw-http.js";
import { names, readEvents } from "../../../helpers/http/sse-reader.js";

const startService = serviceStarter();

const AUTH = `Authorization: Bearer ${TOKEN}`;
const JSON_TYPE = "Content-Type: application/json";
const BODY = '{"message":"x"}';

describe("broken HTTP", () => {
  const cases: [string, string, number][] = [
    [
      "transfer-encoding with content-length",
      requestText(
        "POST /hooks/agent",
        [AUTH, JSON_TYPE, "Content-Length: 15", "Transfer-Encoding: chunked"],
        `f\r\n${BODY}\r\n0\r\n\r\n`,
      ),
      400,
    ],
    [
      "two content-lengths",
      requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Content-Length: 15", "Content-Length: 16"], BODY),
      400,
    ],
    ["a negative content-length", requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Content-Length: -1"], BODY), 400],
    [
      "an unknown transfer-encoding",
      requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Transfer-Encoding: gzip"], BODY),
      400,
    ],
    ["no Host", "GET /health HTTP/1.1\r\n\r\n", 400],
    ["two Hosts", requestText("GET /health", ["Host: other"]), 400],
    ["the same Host twice", requestText("GET /health", ["hOST: 127.0.0.1"]), 400],
    ["a header of 20 KB", requestText("GET /health", [`X-Long: ${"a".repeat(20_000)}`]), 431],
    [
      "20 KB of headers",
      requestText(
        "GET /health",
        Array.from({ length: 400 }, (_, i) => `X-${i}: ${"a".repeat(50)}`),
      ),
      431,
    ],
    ["a URL of 20 KB", requestText(`GET /health?${"a".repeat(20_000)}`, []), 431],
    ["a NUL in a header", requestText("GET /health", ["X-A: a\0b"]), 400],
    ["a line folded", requestText("POST /hooks/agent", ["Authorization: Bearer", ` ${TOKEN}`, JSON_TYPE], BODY), 400],
    ["a space before the colon", requestText("GET /health", ["X-A : b"]), 400],
    ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400],
    ["an unknown method", requestText("BREW /hooks/agent", []), 400],
    ["a proxy's CONNECT", requestText("CONNECT example.com:443", [AUTH]), 400],
    ["another expectation", requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Expect: 200-ok"], BODY), 417],
  ];
  for (const [what, request, status] of cases) {
    it(`${what}: ${status}, the service continues`, async () => {
      const { port, get } = await startService();
      const response = await rawRequest(port, Buffer.from(request, "latin1"));
      assert.equal(response.status, status, response.body);
      assert.equal(JSON.parse(response.body).ok, false);
      const list = (await (await get("/api/runs")).json()) as { runs: unknown[] };
      assert.deepEqual(list.runs, []);
    });
  }

  it("a token of 16 KB is wrong, not too large", async () => {
    const { port } = await startService();
    for (const name of ["Authorization: Bearer ", "x-compat-token: ", "x-service-hook-token: "]) {
      const headers = [`${name}${"t".repeat(16 * 1024)}`, JSON_TYPE, "User-Agent: a client", "Accept: */*"];
      assert.equal((await rawRequest(port, requestText("POST /hooks/agent", headers, BODY))).status, 401);
    }
  });

  it("a smuggled second request gets no response", async () => {
    const { port } = await startService();
    const smuggled = requestText("POST /hooks/agent", [AUTH, JSON_TYPE], BODY);
    const client = new RawClient(port);
    client.send(
      requestText(
        "POST /hooks/agent",
        [JSON_TYPE, "Content-Length: 5", "Transfer-Encoding: chunked"],
        `0\r\n\r\n${smuggled}`,
      ),
    );
    await client.closed;
    assert.equal(client.text.match(/HTTP\/1\.1/g)?.length, 1);
  });
});

describe("slow clients", () => {
  it("late headers: 408 as JSON, the connection is closed", async () => {
    const { port } = await startService({ config: { limits: { header_seconds: 1 } } });
    const client = new RawClient(port).send("POST /hooks/agent HTTP/1.1\r\nHost: a\r\n");
    const drip = setInterval(() => client.send("X-A: b\r\n"), 200);
    const { status, body } = await client.response();
    clearInterval(drip);
    assert.equal(status, 408);
    assert.deepEqual([JSON.parse(body).ok, JSON.parse(body).code], [false, "invalid_request"]);
    await client.closed;
  });

  it("500 idle sockets do not block others and are closed", async () => {
    const { port, get } = await startService({ config: { limits: { header_seconds: 1 } } });
    const idle = Array.from({ length: 500 }, () => new RawClient(port));
    await Promise.all(idle.map(({ socket }) => new Promise((resolve) => socket.once("connect", resolve))));
    let open = idle.length;
    const closed = Promise.all(idle.map((client) => client.closed.then(() => open--)));
    assert.equal((await get("/health")).status, 200);
    assert.ok(open > 0);
    await closed;
  });

  it("a client that never closes its side is disconnected", async () => {
    const { port, listening } = await startService({ config: { limits: { header_seconds: 1 } } });
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => undefined);
    socket.write("GET /health HTTP/1.1\r\n");
    const count = () => new Promise<number>((resolve) => listening.server.getConnections((_, n) => resolve(n)));
    await until(async () => (await count()) === 1, "connected");
    await until(async () => (await count()) === 0, "dropped");
    socket.destroy();
  });

  it("an unread body does not hold its connection", async () => {
    const { port } = await startService({ config: { limits: { header_seconds: 1 } } });
    const client = new RawClient(port).send(requestText("GET /health", ["Content-Length: 1000"]));
    assert.equal((await client.response()).status, 200);
    await client.closed;
  });

  it("connections beyond the limit are dropped, later ones accepted", async () => {
    const { port, listening, get } = await startService({ config: { limits: { streams: 1 } } });
    listening.server.maxConnections = 5;
    const clients = Array.from({ length: 8 }, () => new RawClient(port));
    await until(() => clients.filter(({ socket }) => socket.destroyed).length === 3);
    for (const client of clients) client.destroy();
    await until(async () => (await get("/health").catch(() => undefined))?.status === 200);
  });

  it("has room for every stream and more", async () => {
    const { listening } = await startService({ config: { limits: { streams: 3000 } } });
    assert.ok(listening.server.maxConnections > 3500);
  });
});

describe("Expect: 100-continue", () => {
  const expect = (...headers: string[]) =>
    requestText("POST /hooks/agent", [JSON_TYPE, "Expect: 100-continue", "Content-Length: 15", ...headers]);

  it("without a token: 401 before the body", async () => {
    const { port } = await startService();
    const client = new RawClient(port).send(expect());
    const { status } = await client.response();
    client.destroy();
    assert.equal(status, 401);
    assert.doesNotMatch(client.text, /100 Continue/);
  });

  for (const [what, header, status] of [
    ["another type", "Content-Type: text/plain", 415],
    ["a body too large", "Content-Length: 999999", 413],
  ] as const) {
    it(`${what}: ${status} before the body`, async () => {
      const { port } = await startService();
      const name = header.split(":")[0]!;
      const text = expect(AUTH).replace(new RegExp(`${name}: .*`), header);
      const client = new RawClient(port).send(text);
      assert.equal((await client.response()).status, status);
      client.destroy();
    });
  }

  it("with a token: 100, then the run starts", async () => {
    const { port } = await startService();
    const client = new RawClient(port).send(expect(AUTH));
    await until(() => client.text.includes("100 Continue"));
    client.send(BODY);
    await until(() => client.text.includes("run_id"));
    assert.match(client.text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    client.destroy();
  });
});

describe("stop", () => {
  it("responds 503 while runs end, closes streams after their last event", async () => {
    const release: (() => void)[] = [];
    const agent = async () => {
      await new Promise<void>((resolve) => release.push(resolve));
      return { response: "in time" };
    };
    const { listening, start, post, url } = await startService({ agent });
    const { stream_url } = await start("x");
    const events = readEvents(await fetch(url + stream_url));
    await until(() => release.length === 1);
    const closed = listening.close(10);
    const refused = await post("/hooks/agent", { message: "x" });
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    release[0]!();
    assert.deepEqual((await events).at(-1)!.data, { response: "in time" });
    await closed;
    await assert.rejects(fetch(`${url}/health`));
  });

  it("interrupts runs after the drain and reports it to readers", async () => {
    const agent = () => new Promise<never>(() => undefined);
    const { listening, start, url, hooks } = await startService({ agent });
    const { stream_url, run_id } = await start("x");
    const streams = await Promise.all([1, 2].map(() => fetch(url + stream_url)));
    const stopped = listening.close(0.1);
    for (const stream of streams) {
      const events = await readEvents(stream);
      assert.equal(names(events).at(-1), "error");
      assert.equal((events.at(-1)!.data as { code: string }).code, "interrupted");
    }
    await stopped;
    assert.equal(hooks.runs.closing, true);
    assert.match(run_id, /-/);
  });

  it("ends streams of queued runs properly, so that readers reconnect", async () => {
    const { listening, start, port } = await startService();
    await start("hold");
    const { stream_url } = await start("queued");
    const clients = Array.from({ length: 5 }, () => new RawClient(port).send(requestText(`GET ${stream_url}`, [])));
    for (const client of clients) await until(() => client.text.includes("replay_meta"));
    await listening.close(0);
    for (const client of clients) {
      await client.closed;
      assert.equal(client.error, undefined);
      assert.match(client.text, /\r\n0\r\n\r\n$/);
    }
  });

  it("does not wait for a paused reader, nor for idle connections", async () => {
    const { listening, start, port } = await startService();
    const { stream_url } = await start("hold");
    const paused = new RawClient(port).send(requestText(`GET ${stream_url}`, []));
    await until(() => paused.text.includes("replay_meta"));
    paused.socket.pause();
    const idle = new RawClient(port).send(requestText("GET /health", []));
    await idle.response();
    await listening.close(0);
    paused.destroy();
  });

  it("can be repeated, and called before listen", async () => {
    const { listening } = await startService();
    await Promise.all([listening.close(0), listening.close(0)]);
    const logger = createLogger({ level: "silent" });
    const hooks = createHookService({ agent: scriptedAgent, config: { hooks_token: TOKEN }, logger });
    await createServer({ hooks, port: 0, logger }).close(0);
  });
});

describe("listen", () => {
  it("names an address that is not available", async () => {
    const { port, hooks } = await startService();
    const other = createServer({ hooks, port, logger: createLogger({ level: "silent" }) });
    await refuses(
      other.listen(),
      "config.invalid",
      new RegExp(`127\\.0\\.0\\.1, port ${port}: the port is already in use .EADDRINUSE.; .*choose another port`),
    );
  });

  it("refuses to listen twice, and after it was closed", async () => {
    const { listening } = await startService();
    await refuses(listening.listen(), "config.invalid", /: this server listens already\.$/);
    await listening.close(0);
    await refuses(
      listening.listen(),
      "usage.invalid",
      /^listen: the server was closed; createServer makes a new one\.$/,
    );
    assert.equal(listening.server.listening, false);
  });

  it("refuses invalid options", async () => {
    const { hooks } = await startService();
    await refuses(() => createServer({ hooks, port: 70_000 }), "config.invalid", /"port"/);
    await refuses(() => createServer({ hooks, limits: { header_seconds: 0 } }), "config.invalid", /header_seconds/);
  });
});
