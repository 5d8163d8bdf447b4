import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeMultipart, type Notification, NotifyFault, notify, type PostRequest, post } from "#src/io/http/post.js";
import { refuses, rejectsAs } from "../../../helpers/errors.js";

describe("io/http/post", () => {
  let server: Server;
  let url = "";
  let respond: (response: ServerResponse) => void;
  let closed = 0;

  before(async () => {
    server = createServer((request, response) => {
      request.resume();
      response.on("close", () => {
        closed++;
      });
      respond(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const send = (more: Partial<PostRequest> = {}) =>
    post({
      url,
      headers: {},
      body: new Uint8Array([1, 2, 3]),
      fetch,
      signal: new AbortController().signal,
      clock: () => new Date(),
      ...more,
    });

  it("returns status, type and body", async () => {
    respond = (response) => {
      response.writeHead(201, { "content-type": "Text/Plain; charset=utf-8" });
      response.write("a");
      response.end("b");
    };
    const { status, type, body } = await send();
    assert.deepEqual([status, type, body.toString()], [201, "text/plain", "ab"]);
  });

  it("times out for a server that does not respond to the end", async () => {
    respond = () => {};
    await refuses(send({ timeoutMs: 60 }), "remote.timeout", /0.06 s/);
    respond = (response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write("x"), 10);
      response.on("close", () => clearInterval(timer));
    };
    await refuses(send({ timeoutMs: 60 }), "remote.timeout");
  });

  it("times out for a fetch that ignores its signal", async () => {
    const never = () => new Promise<Response>(() => {});
    await refuses(send({ fetch: never, timeoutMs: 30 }), "remote.timeout");
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    await rejectsAs(controller.signal, send({ fetch: never, signal: controller.signal }));
  });

  it("stops reading at the limit, announced or not, and closes the connection", async () => {
    let sent = 0;
    respond = (response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(64 * 1024);
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
        sent += chunk.length;
      };
      response.on("drain", more);
      more();
    };
    const before = closed;
    await refuses(send({ maxBytes: 1_000_000 }), "remote.failed", /1000000 bytes/);
    while (closed === before) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(sent < 50_000_000, `${sent} bytes sent`);
    respond = (response) => {
      response.writeHead(200, { "content-length": String(2 ** 40) });
      response.write("x");
    };
    await refuses(send(), "remote.failed", /67108864 bytes/);
  });

  it("bounds what a compressed answer unpacks to", async () => {
    const { gzipSync } = await import("node:zlib");
    const bomb = gzipSync(Buffer.alloc(8_000_000));
    respond = (response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      response.end(bomb);
    };
    await refuses(send({ maxBytes: 1_000_000 }), "remote.failed", /1000000 bytes/);
  });

  it("reports a connection that breaks", async () => {
    respond = (response) => {
      response.writeHead(200, { "content-length": "10" });
      response.write("abc");
      setTimeout(() => response.destroy(), 10);
    };
    await refuses(send(), "remote.failed", /connection failed/);
  });

  it("names the service in whole sentences", async () => {
    const sentences: string[] = [];
    const refused = async (more: Partial<PostRequest>) =>
      sentences.push((await refuses(send(more), /^remote\./)).message);
    const cause = Object.assign(new Error("with the key"), { code: "ECONNREFUSED" });
    await refused({ fetch: () => Promise.reject(new TypeError("fetch failed", { cause })) });
    await refused({ fetch: () => new Promise(() => {}), timeoutMs: 20 });
    respond = (response) => response.writeHead(302, { location: "/" }).end();
    await refused({});
    respond = (response) => response.end("abc");
    await refused({ maxBytes: 2 });
    assert.deepEqual(sentences, [
      "Remote image service: the connection failed (ECONNREFUSED).",
      "Remote image service: no response within 0.02 s.",
      "Remote image service: the server answered with a redirect (302), which is not followed.",
      "Remote image service: expected a response of at most 2 bytes, received more.",
    ]);
  });

  it("waits once for Retry-After, in seconds or until a date", async () => {
    let count = 0;
    respond = (response) => {
      count++;
      response.writeHead(503, { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" });
      response.end();
    };
    const start = performance.now();
    const clock = () => new Date("2015-10-21T07:27:59.900Z");
    assert.equal((await send({ clock })).status, 503);
    assert.equal(count, 2);
    assert.ok(performance.now() - start >= 95);
  });

  it("does nothing for an aborted run", async () => {
    let asked = false;
    respond = () => {
      asked = true;
    };
    const signal = AbortSignal.abort();
    await rejectsAs(signal, send({ signal }));
    assert.equal(asked, false);
  });
});

describe("io/http/multipart", () => {
  it("keeps order and bytes", () => {
    const { body, contentType } = encodeMultipart([
      { name: "a", value: "ü\n" },
      { name: "b", filename: "c.png", type: "image/png", bytes: new Uint8Array([0, 13, 10, 255]) },
    ]);
    const boundary = contentType.replace("multipart/form-data; boundary=", "");
    const expected = Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nü\n\r\n`),
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="b"; filename="c.png"\r\n`),
      Buffer.from("Content-Type: image/png\r\n\r\n"),
      Buffer.from([0, 13, 10, 255]),
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]);
    assert.deepEqual(Buffer.from(body), expected);
  });

  it("has a boundary that cannot be guessed", () => {
    assert.notEqual(encodeMultipart([]).contentType, encodeMultipart([]).contentType);
  });
});

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
