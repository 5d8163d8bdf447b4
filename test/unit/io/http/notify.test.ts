import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Notification, NotifyFault, notify } from "#src/io/http/notify.js";

describe("notify", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
  });

  async function listen(listener: RequestListener): Promise<URL> {
    const server = createServer(listener);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x`);
  }
  const send = (url: URL, extra: Partial<Notification> = {}) =>
    notify({
      url,
      headers: { "x-a": "1" },
      body: "ü",
      isAllowed: () => true,
      timeoutMs: 5000,
      signal: new AbortController().signal,
      ...extra,
    });
  const faultOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
      () => assert.fail("expected a fault"),
      (caught: unknown) => caught,
    );
    assert.ok(error instanceof NotifyFault, String(error));
    return error.message;
  };

  it("posts the body with its headers and returns the status", async () => {
    let seen = "";
    const url = await listen((req, res) => {
      req.on("data", (chunk: Buffer) => {
        seen += `${req.method} ${req.headers["x-a"]} ${req.headers["content-length"]} ${chunk}`;
      });
      req.on("end", () => void res.writeHead(202).end("thanks"));
    });
    assert.deepEqual(await send(url), { status: 202, retryAfter: undefined });
    assert.equal(seen, "POST 1 2 ü");
  });

  it("does not follow a redirect", async () => {
    let requests = 0;
    const url = await listen((_req, res) => {
      requests += 1;
      res.writeHead(307, { location: "/y" }).end();
    });
    assert.equal((await send(url)).status, 307);
    assert.equal(requests, 1);
  });

  it("takes the status of a response that does not end, or is too long", async () => {
    const dripping = await listen((_req, res) => void res.writeHead(200).write("x"));
    assert.equal((await send(dripping, { timeoutMs: 2000 })).status, 200);
    let sent = 0;
    const endless = await listen((_req, res) => {
      res.writeHead(200);
      const more = () => {
        while (!res.destroyed && res.write("x".repeat(10_000))) sent += 10_000;
      };
      res.on("drain", more);
      more();
    });
    assert.equal((await send(endless)).status, 200);
    assert.ok(sent < 50e6, `${sent} bytes were taken`);
  });

  it("fails if there is no response in time, and when it is stopped", async () => {
    const silent = await listen(() => undefined);
    assert.equal(await faultOf(send(silent, { timeoutMs: 50 })), "no response within 0.05 s");
    const stopping = new AbortController();
    const stopped = faultOf(send(silent, { signal: stopping.signal }));
    stopping.abort();
    assert.equal(await stopped, "the service is shutting down");
    const broken = await listen((req) => req.socket.destroy());
    assert.match(await faultOf(send(broken)), /the connection failed \(ECONNRESET\)/);
  });

  it("connects to no address that is not allowed, named or literal", async () => {
    let requests = 0;
    const url = await listen((_req, res) => {
      requests += 1;
      res.end();
    });
    const isAllowed = (ip: string) => ip !== "127.0.0.1" && ip !== "::1";
    const named = new URL(url.href.replace("127.0.0.1", "localhost"));
    for (const target of [url, named, new URL("http://[::1]:9/"), new URL("http://2130706433:9/")]) {
      assert.equal(await faultOf(send(target, { isAllowed })), "the address is not allowed", target.href);
    }
    assert.equal(requests, 0);
  });
});
