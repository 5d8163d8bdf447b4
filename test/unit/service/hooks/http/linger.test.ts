import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";
import { serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { RawClient, requestText } from "../../../../helpers/http/raw-http.js";

const startService = serviceStarter();

const JSON_TYPE = "Content-Type: application/json";
const AUTH = `Authorization: Bearer ${TOKEN}`;
const MEBIBYTE = Buffer.alloc(1024 * 1024, " ");
const LENGTH = `Content-Length: ${10 * MEBIBYTE.length}`;

/** Pushes a request and 10 MiB of body without reading a byte, then reads what there is until the connection ends. */
async function push(port: number, head: string, options: { chunked?: boolean; pauseMs?: number } = {}) {
  const client = new RawClient(port);
  await once(client.socket, "connect");
  client.socket.pause();
  client.send(head);
  for (let i = 0; i < 10 && !client.socket.destroyed; i++) {
    if (options.chunked) client.send(`${MEBIBYTE.length.toString(16)}\r\n`);
    const sent = new Promise((resolve) => client.socket.write(MEBIBYTE, resolve));
    if (options.chunked) client.send("\r\n");
    await sent;
    await sleep(options.pauseMs ?? 0);
  }
  if (options.chunked) client.send("0\r\n\r\n");
  await sleep(50);
  client.socket.resume();
  const response = await client.response();
  await client.closed;
  return { ...response, error: client.error, responses: client.text.match(/HTTP\/1\.1 /g)?.length };
}

describe("a response before the body is complete", () => {
  const refusals = [
    ["401", [], 401],
    ["413", [AUTH], 413],
  ] as const;
  for (const [name, auth, status] of refusals) {
    for (const connection of ["close", "keep-alive"]) {
      const head = (version: string, ...more: string[]) =>
        requestText("POST /hooks/agent", [JSON_TYPE, `Connection: ${connection}`, ...auth, ...more]).replace(
          "HTTP/1.1",
          version,
        );
      const arrives = { status, error: undefined, responses: 1, connection: "close" };
      const check = async (text: string, options?: Parameters<typeof push>[2]) => {
        const { port } = await startService();
        const { headers, error, responses, ...response } = await push(port, text, options);
        assert.deepEqual({ status: response.status, error, responses, connection: headers.connection }, arrives);
      };

      it(`${name} reaches a client that sends 10 MB first (${connection})`, () => check(head("HTTP/1.1", LENGTH)));

      it(`${name} reaches a client that sends slowly (${connection})`, () =>
        check(head("HTTP/1.1", LENGTH), { pauseMs: 30 }));

      it(`${name} reaches a client that sends chunks (${connection})`, () =>
        check(head("HTTP/1.1", "Transfer-Encoding: chunked"), { chunked: true }));

      it(`${name} reaches a client that does not wait for 100 (${connection})`, () =>
        check(head("HTTP/1.1", "Expect: 100-continue", LENGTH)));

      it(`${name} reaches an HTTP/1.0 client (${connection})`, () => check(head("HTTP/1.0", LENGTH)));
    }
  }

  for (const [what, request, status] of [
    ["an unknown path", requestText("POST /nope", ["Connection: close", LENGTH]), 404],
    ["a path of ours with a slash", requestText("POST /hooks/agent/", ["Connection: close", LENGTH]), 404],
    ["no Host", `POST /hooks/agent HTTP/1.1\r\nConnection: close\r\n${LENGTH}\r\n\r\n`, 400],
    ["headers too large", requestText("POST /hooks/agent", [`X: ${"a".repeat(20_000)}`, LENGTH]), 431],
    ["another expectation", requestText("POST /hooks/agent", ["Expect: 200-ok", LENGTH]), 417],
    ["another method", requestText("PUT /hooks/agent", [AUTH, LENGTH]), 405],
  ] as const) {
    it(`${status} for ${what} arrives`, async () => {
      const { port } = await startService();
      const { status: received, error, headers } = await push(port, request);
      assert.deepEqual([received, error, headers.connection], [status, undefined, "close"]);
    });
  }

  it("is the last: a request behind the unread body is ignored", async () => {
    const { port, hooks } = await startService();
    const body = '{"message":"x"}';
    const client = new RawClient(port).send(requestText("POST /hooks/agent", [JSON_TYPE, "Content-Length: 400000"]));
    await client.response();
    client.send(" ".repeat(400_000)).send(requestText("POST /hooks/agent", [AUTH, JSON_TYPE], body));
    await client.closed;
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 0);
  });

  it("ends our side of the connection, for clients that read until the end", async () => {
    // whose limits of the lingering never pass
    const { port } = await startService({ clock: new FakeClock() });
    const client = new RawClient(port).send(requestText("POST /hooks/agent", [JSON_TYPE, LENGTH]));
    await client.closed;
    assert.match(client.text, /^HTTP\/1\.1 401 /);
  });

  it("a client that sends without end, or nothing, is disconnected", async () => {
    const { port, listening } = await startService();
    const count = () => new Promise<number>((resolve) => listening.server.getConnections((_, n) => resolve(n)));
    const ask = () => {
      const client = new RawClient(port).send(
        requestText("POST /hooks/agent", [JSON_TYPE, "Content-Length: 1000000000"]),
      );
      client.socket.allowHalfOpen = true;
      return client;
    };
    const [silent, greedy] = [ask(), ask()];
    await Promise.all([silent.response(), greedy.response()]);
    while (!greedy.socket.destroyed) await new Promise((resolve) => greedy.socket.write(MEBIBYTE, resolve));
    assert.ok(greedy.socket.bytesWritten < 200 * MEBIBYTE.length);
    await until(async () => (await count()) === 0, "both are cut");
    silent.destroy();
  });
});

describe("a body that arrives with its headers", () => {
  it("keeps its connection, whatever the response", async () => {
    const { port } = await startService();
    const client = new RawClient(port);
    for (const [headers, status] of [
      [[JSON_TYPE], 401],
      [[AUTH, "Content-Type: text/plain"], 415],
      [[AUTH, JSON_TYPE], 200],
    ] as const) {
      const before = client.text.length;
      client.send(requestText("POST /hooks/agent", headers, '{"message":"x"}'));
      // its whole response, of which the body is JSON
      await until(() => client.text.slice(before).endsWith("}"));
      const received = client.text.slice(before);
      assert.ok(received.startsWith(`HTTP/1.1 ${status} `), received);
      assert.match(received, /\r\nConnection: keep-alive\r\n/);
    }
    client.destroy();
  });

  it("a later body that is read keeps it too, unless the client closes", async () => {
    const { port } = await startService();
    for (const wish of ["keep-alive", "close"]) {
      const body = '{"message":"x"}';
      const headers = [AUTH, JSON_TYPE, `Connection: ${wish}`, `Content-Length: ${body.length}`];
      const client = new RawClient(port).send(requestText("POST /hooks/agent", headers));
      await sleep(50);
      const { status, headers: answered } = await client.send(body).response();
      assert.deepEqual([status, answered.connection], [200, wish]);
      client.destroy();
    }
  });
});

describe("a body that stalls", () => {
  it("gets one 408, however short header_seconds and late the headers", async () => {
    const stall = async (header_seconds: number, lateMs: number) => {
      const { port } = await startService({ config: { limits: { header_seconds } } });
      const client = new RawClient(port);
      client.socket.allowHalfOpen = true;
      client.send("POST /hooks/agent HTTP/1.1\r\n");
      await sleep(lateMs);
      client.send(["Host: x", AUTH, JSON_TYPE, "Content-Length: 15", "", "{"].join("\r\n"));
      const drip = setInterval(() => client.send(" "), 900);
      await until(() => client.text.includes("HTTP/1.1 408"), "the 408");
      // the server's own check of its connections, which may not add a second one
      await Promise.race([client.closed, sleep(1000)]);
      clearInterval(drip);
      client.destroy();
      assert.deepEqual(client.text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 408"]);
      assert.match(client.text, /\r\nConnection: close\r\n/);
    };
    await Promise.all([stall(1, 0), stall(1, 700), stall(2, 0), stall(2, 1500)]);
  });
});
