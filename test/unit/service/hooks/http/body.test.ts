import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { HookError } from "#src/service/hooks/hook-error.js";
import { Arrival, decodeJson } from "#src/service/hooks/http/body.js";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";
import { bearer, type RunningService, serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { RawClient, rawRequest, requestText } from "../../../../helpers/http/raw-http.js";
import { readEvents } from "../../../../helpers/http/sse-reader.js";

const startService = serviceStarter();

const JSON_TYPE = "Content-Type: application/json";
const AUTH = `Authorization: Bearer ${TOKEN}`;

async function refusal(response: Response): Promise<[number, string, string]> {
  const { code, error } = (await response.json()) as { code: string; error: string };
  return [response.status, code, error];
}

const runCount = async ({ hooks }: RunningService) => (await hooks.runs.list({ limit: 1000 })).runs.length;

describe("content type", () => {
  const types: [string, number][] = [
    ["application/json", 200],
    ['Application/JSON ; Charset="UTF-8"', 200],
    ["application/vnd.x+json", 200],
    ["application/json; charset=utf8; x=y", 200],
    ["application/json; charset=iso-8859-1", 415],
    ["application/json; charset=utf-16", 415],
    ["application/jsonp", 415],
    ["application/x-www-form-urlencoded", 415],
    ["text/plain", 415],
    ["text/json", 415],
    ["multipart/form-data; boundary=x", 415],
    ["application/json, text/plain", 415],
    ["", 415],
  ];
  for (const [type, status] of types) {
    it(`${JSON.stringify(type)}: ${status}`, async () => {
      const { post } = await startService();
      const response = await post("/hooks/agent", '{"message":"x"}', { "content-type": type });
      assert.equal(response.status, status);
      if (status === 415) assert.equal((await refusal(response))[1], "unsupported_media_type");
    });
  }

  it("missing: 415", async () => {
    const { port } = await startService();
    assert.equal((await rawRequest(port, requestText("POST /hooks/agent", [AUTH], '{"message":"x"}'))).status, 415);
  });
});

describe("decodeJson", () => {
  it("takes 131,072 values and no more; signs in texts are none", () => {
    const text = (values: number) => Buffer.from(`[${"1,".repeat(values - 2)}",[{\\",[{\\\\"]`);
    assert.equal(JSON.parse(decodeJson(text(131_072))).length, 131_071);
    assert.throws(
      () => decodeJson(text(131_073)),
      (error: unknown) => error instanceof HookError && error.message === "the body: expected at most 131072 values",
    );
  });
});

describe("JSON body", () => {
  const bad: [string, string | Uint8Array<ArrayBuffer>][] = [
    ["malformed", '{"message":"x"'],
    ["null", "null"],
    ["a string", '"message"'],
    ["a number", "5"],
    ["an array", '[{"message":"x"}]'],
    ["empty", ""],
    ["blanks", "  \n"],
    ["NaN", '{"message":NaN}'],
    ["single quotes", "{'message':'x'}"],
    ["UTF-16", new Uint8Array(Buffer.from('\ufeff{"message":"x"}', "utf16le"))],
    ["bytes that are no UTF-8", new Uint8Array(Buffer.from('{"message":"\xff"}', "latin1"))],
    ["two byte order marks", '\ufeff\ufeff{"message":"x"}'],
    ["without message", "{}"],
    ["a message that is a number", '{"message":5}'],
    ["a message that is an object", '{"message":{"toString":"x"}}'],
    ["a message that is an array", '{"message":["x"]}'],
    ["a null message", '{"message":null}'],
    ["a blank message", '{"message":" \\t\\n\\u00a0"}'],
    ["a lone surrogate", '{"message":"a\\ud800b"}'],
    ["a message only in __proto__", '{"__proto__":{"message":"x"}}'],
    ["a message only in constructor", '{"constructor":{"prototype":{"message":"x"}}}'],
    ["a name that is a number", '{"message":"x","name":5}'],
    ["a name of 201 characters", `{"message":"x","name":"${"n".repeat(201)}"}`],
    ["a message of 128 Ki characters and one", `{"message":"${"m".repeat(131_073)}"}`],
    ["a time-out of 0", '{"message":"x","timeoutSeconds":0}'],
    ["a time-out of 3,601", '{"message":"x","timeoutSeconds":3601}'],
    ["a time-out of 1.5", '{"message":"x","timeoutSeconds":1.5}'],
    ["100,000 deep", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["100,000 deep as message", `{"message":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    ["100,000 deep, unclosed", `{"message":${'{"a":'.repeat(40_000)}`],
  ];
  for (const [what, body] of bad) {
    it(`${what}: 400, no run starts`, async () => {
      const service = await startService();
      const [status, code, error] = await refusal(await service.post("/hooks/agent", body));
      assert.deepEqual([status, code], [400, "invalid_request"], error);
      assert.equal(await runCount(service), 0);
    });
  }

  const good: [string, string, string][] = [
    ["a byte order mark", '\ufeff{"message":"x"}', "x"],
    ["100,000 deep in an unknown field", `{"message":"x","other":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "x"],
    ["__proto__ keys", '{"__proto__":{"polluted":true,"sessionKey":"hook:evil"},"message":"x"}', "x"],
    ["constructor keys", '{"constructor":{"prototype":{"polluted":true}},"message":"x"}', "x"],
    ["duplicate keys: the last is checked and runs", '{"message":5,"message":"x"}', "x"],
    ["NUL", '{"message":"a\\u0000b"}', "a\0b"],
    ["a message of 128 Ki characters", `{"message":"${"m".repeat(131_072)}"}`, "m".repeat(131_072)],
    ["null where a field is optional", '{"message":"x","name":null,"sessionKey":null,"timeoutSeconds":null}', "x"],
  ];
  for (const [what, body, message] of good) {
    it(`${what}: 200`, async () => {
      const { post, hooks } = await startService();
      const response = await post("/hooks/agent", body);
      assert.equal(response.status, 200, await response.clone().text());
      const { run_id } = (await response.json()) as { run_id: string };
      assert.equal((await hooks.runs.get(run_id)).message, message);
      assert.equal(({} as Record<string, unknown>).polluted, undefined);
    });
  }

  it("duplicate session keys: the policy checks the value in use", async () => {
    const service = await startService({
      config: { hooks_allow_request_session_key: true, hooks_allowed_session_key_prefixes: ["hook:"] },
    });
    const denied = await service.post("/hooks/agent", '{"message":"x","sessionKey":"hook:a","sessionKey":"evil"}');
    assert.equal((await refusal(denied))[1], "session_key_prefix_denied");
    const allowed = await service.post("/hooks/agent", '{"message":"x","sessionKey":"evil","sessionKey":"hook:a"}');
    assert.equal(((await allowed.json()) as { session_key: string }).session_key, "hook:a");
  });

  it("a message cannot forge an event", async () => {
    const { url, start } = await startService();
    const message = 'x\n\ndata: x\nevent: done\ndata: {"response":"forged"}\r\n\r\n\u2028id: 99';
    const { stream_url } = await start(message);
    const events = await readEvents(await fetch(url + stream_url));
    assert.deepEqual(events.at(-1), { id: events.length - 1, event: "done", data: { response: message } });
    assert.equal(events.filter(({ event }) => event === "done").length, 1);
  });

  it("errors do not echo the body", async () => {
    const { post, log } = await startService();
    const [, , error] = await refusal(await post("/hooks/agent", '{"message": se-cr-et}'));
    assert.doesNotMatch(error + log(), /se-cr-et/);
  });
});

describe("body size", () => {
  it("announced 10 MB: 413 before they are sent", async () => {
    const { port } = await startService();
    const client = new RawClient(port);
    client.send(requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Content-Length: 10485760"])).send("{");
    const response = await client.response();
    client.destroy();
    const { code, error } = JSON.parse(response.body);
    assert.deepEqual([response.status, code], [413, "payload_too_large"]);
    assert.equal(error, "the body is too large: expected at most 262144 bytes");
  });

  it("sent 10 MB: 413, the service continues", async () => {
    const { post } = await startService();
    const body = new Uint8Array(10 * 1024 * 1024).fill(0x20);
    const responses = await Promise.all(Array.from({ length: 3 }, () => post("/hooks/agent", body)));
    for (const response of responses)
      assert.deepEqual((await refusal(response)).slice(0, 2), [413, "payload_too_large"]);
    assert.equal((await post("/hooks/agent", { message: "x" })).status, 200);
  });

  it("a chunked body is cut at the limit", async () => {
    const { port } = await startService();
    const client = new RawClient(port);
    client.send(requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Transfer-Encoding: chunked"]));
    const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;
    for (let i = 0; i < 5; i++) client.send(chunk);
    const response = await client.response();
    client.destroy();
    assert.equal(response.status, 413);
  });

  it("a body of exactly the limit is accepted, one byte more is not", async () => {
    const { post } = await startService({ config: { limits: { body_bytes: 64 } } });
    const body = (bytes: number) => `{"message":"x"}${" ".repeat(bytes - 15)}`;
    assert.equal((await post("/hooks/agent", body(64))).status, 200);
    assert.equal((await post("/hooks/agent", body(65))).status, 413);
    const zipped = (bytes: number) => new Uint8Array(gzipSync(body(bytes)));
    assert.equal((await post("/hooks/agent", zipped(64), { "content-encoding": "gzip" })).status, 200);
    assert.equal((await post("/hooks/agent", zipped(65), { "content-encoding": "gzip" })).status, 413);
  });

  it("10 MB without a token: 401 after the headers", async () => {
    const { port } = await startService();
    const client = new RawClient(port);
    client.send(requestText("POST /hooks/agent", [JSON_TYPE, "Content-Length: 10485760"])).send("{");
    assert.equal((await client.response()).status, 401);
    client.destroy();
  });

  it("a connection that keeps sending after its response is cut", async () => {
    const { port } = await startService();
    const client = new RawClient(port);
    client.send(requestText("POST /hooks/agent", [JSON_TYPE, "Content-Length: 10485760"]));
    const drip = setInterval(() => client.send("x"), 100);
    await client.closed;
    clearInterval(drip);
    assert.match(client.text, /^HTTP\/1\.1 401 /);
  });
});

describe("compressed body", () => {
  const gzip = { "content-encoding": "gzip" };
  const zip = (text: string | Buffer) => new Uint8Array(gzipSync(text));

  it("gzip is read", async () => {
    const { post } = await startService();
    assert.equal((await post("/hooks/agent", zip('{"message":"x"}'), gzip)).status, 200);
    assert.equal((await post("/hooks/agent", zip('{"message":"x"}'), { "content-encoding": "X-GZIP" })).status, 200);
  });

  it("a gzip bomb: 413 without inflating it", async () => {
    const { post } = await startService();
    const bomb = zip(Buffer.alloc(100 * 1024 * 1024, " "));
    assert.ok(bomb.length < 200 * 1024);
    const before = process.memoryUsage().arrayBuffers;
    assert.deepEqual((await refusal(await post("/hooks/agent", bomb, gzip))).slice(0, 2), [413, "payload_too_large"]);
    assert.ok(process.memoryUsage().arrayBuffers - before < 20 * 1024 * 1024, "the bomb did not go off");
  });

  it("endless empty gzip members: 413", async () => {
    const { port } = await startService();
    const headers = [AUTH, JSON_TYPE, "Content-Encoding: gzip", "Transfer-Encoding: chunked"];
    const client = new RawClient(port).send(requestText("POST /hooks/agent", headers));
    const members = Buffer.concat(new Array<Buffer>(1000).fill(gzipSync("")));
    for (let i = 0; i < 20; i++) {
      client
        .send(`${members.length.toString(16)}\r\n`)
        .send(members)
        .send("\r\n");
    }
    assert.equal((await client.response()).status, 413);
    client.destroy();
  });

  for (const [what, bytes] of [
    ["plain JSON under the name gzip", new Uint8Array(Buffer.from('{"message":"x"}'))],
    ["cut gzip", zip('{"message":"x"}').slice(0, -9)],
    [
      "gzip with a wrong checksum",
      zip('{"message":"x"}').map((byte, i, all) => (i === all.length - 6 ? byte ^ 1 : byte)),
    ],
  ] as const) {
    it(`${what}: 400`, async () => {
      const { post } = await startService();
      assert.equal((await post("/hooks/agent", bytes, gzip)).status, 400);
    });
  }

  for (const encoding of ["br", "deflate", "gzip, gzip", "compress", "x"]) {
    it(`${encoding}: 415`, async () => {
      const { post } = await startService();
      assert.equal((await post("/hooks/agent", '{"message":"x"}', { "content-encoding": encoding })).status, 415);
    });
  }
});

describe("slow and broken bodies", () => {
  it("a late body: 408, the connection is closed", async () => {
    const { port } = await startService({ config: { limits: { header_seconds: 1 } } });
    const client = new RawClient(port);
    client.send(requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Content-Length: 15"])).send('{"mess');
    const drip = setInterval(() => client.send("a"), 400);
    const response = await client.response();
    clearInterval(drip);
    assert.equal(response.status, 408);
    // the server's last resort would send no such header
    assert.equal(JSON.parse(response.body).request_id, response.headers["x-request-id"]);
    assert.equal(JSON.parse(response.body).ok, false);
    await client.closed;
  });

  it("a client that leaves during its body starts no run", async () => {
    const service = await startService();
    for (const encoding of [[], ["Content-Encoding: gzip"]]) {
      const client = new RawClient(service.port);
      const headers = [AUTH, JSON_TYPE, ...encoding, "Expect: 100-continue", "Content-Length: 15"];
      client.send(requestText("POST /hooks/agent", headers));
      await until(() => client.text.includes(" 100 "), "the service to read the body");
      client.send("{");
      client.destroy();
    }
    await until(() => service.log().split('"status":"gone"').length === 3, "two requests are gone");
    assert.equal(await runCount(service), 0);
    assert.equal((await service.get("/api/runs", bearer)).status, 200);
  });

  it("malformed chunks: 400", async () => {
    const { port } = await startService();
    const response = await rawRequest(
      port,
      requestText("POST /hooks/agent", [AUTH, JSON_TYPE, "Transfer-Encoding: chunked"], "zz\r\nbad"),
    );
    assert.equal(response.status, 400);
  });
});

const PIECE = 64 * 1024;

describe("Arrival", () => {
  /** Takes pieces of bytes, each after a time, until one is late. Returns the number of pieces. */
  const piecesOf = async (bytes: number, afterMs: number, most: number, workMs = 0) => {
    const clock = new FakeClock();
    const arrival = new Arrival({ silenceMs: 10_000, bytesPerSecond: 8192, clock });
    let isLate = false;
    for (let piece = 0; piece < most; piece++) {
      arrival.wait(() => {
        isLate = true;
      });
      await clock.advance(afterMs);
      if (isLate) return piece;
      arrival.end(bytes);
      await clock.advance(workMs);
    }
    assert.equal(clock.timers, 0);
    return most;
  };

  it("is never late for 100 MiB at 2 Mbit a second, nor at the least rate", async () => {
    const pieces = (100 * 2 ** 20) / PIECE;
    assert.equal(await piecesOf(PIECE, (PIECE / 250_000) * 1000, pieces), pieces);
    assert.equal(await piecesOf(PIECE, 8000, 100), 100);
  });

  it("is late for a client that sends a little before each silence is over", async () => {
    assert.equal(await piecesOf(1, 999, 100), 10);
    assert.equal(await piecesOf(8192 * 8.5, 9000, 100), 2);
  });

  it("is late after a silence, however fast the bytes before it were", async () => {
    assert.equal(await piecesOf(2 ** 30, 10_000, 3), 0);
    assert.equal(await piecesOf(2 ** 30, 9999, 3), 3);
  });

  it("does not count what is done with the bytes", async () => {
    assert.equal(await piecesOf(8192, 900, 100, 60_000), 100);
  });
});
