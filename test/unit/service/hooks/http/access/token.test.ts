import assert from "node:assert/strict";
import { createTokens } from "#src/service/hooks/http/access/token.js";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { cpuMsSince } from "../../../../../helpers/cpu-time.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { serviceStarter, TOKEN, until } from "../../../../../helpers/hooks/hook-service.js";
import { rawRequest, requestText } from "../../../../../helpers/http/raw-http.js";

const startService = serviceStarter();

const BODY = '{"message":"x"}';
const agentRequest = (...headers: string[]) =>
  requestText("POST /hooks/agent", ["Content-Type: application/json", ...headers], BODY);

describe("hook token over HTTP", () => {
  const cases: [string, string[], number][] = [
    ["no header", [], 401],
    ["a Bearer token", [`Authorization: Bearer ${TOKEN}`], 200],
    ["x-compat-token", [`x-compat-token: ${TOKEN}`], 200],
    ["x-service-hook-token", [`X-Service-Hook-Token: ${TOKEN}`], 200],
    ["a lower-case scheme and a tab", [`authorization: bearer\t${TOKEN}\t `], 200],
    ["a blank Bearer", ["Authorization: Bearer   "], 401],
    ["a blank Bearer with a good x-header", ["Authorization: Bearer ", `x-compat-token: ${TOKEN}`], 200],
    ["Basic with a good x-header", ["Authorization: Basic Zm9vOmJhcg==", `x-service-hook-token: ${TOKEN}`], 200],
    ["a wrong Bearer with a good x-header", ["Authorization: Bearer wrong", `x-compat-token: ${TOKEN}`], 401],
    ["a wrong first x-header with a good second", ["x-compat-token: wrong", `x-service-hook-token: ${TOKEN}`], 401],
    ["a blank first x-header with a good second", ["x-compat-token: ", `x-service-hook-token: ${TOKEN}`], 200],
    ["two Authorization headers, good first", [`Authorization: Bearer ${TOKEN}`, "Authorization: Bearer no"], 401],
    ["two Authorization headers, good last", ["Authorization: Bearer no", `Authorization: Bearer ${TOKEN}`], 401],
    ["the same good Authorization twice", [`Authorization: Bearer ${TOKEN}`, `authorization: Bearer ${TOKEN}`], 401],
    ["two x-compat-token headers", [`x-compat-token: ${TOKEN}`, `X-Compat-Token: ${TOKEN}`], 401],
    ["a token with more behind it", [`Authorization: Bearer ${TOKEN}x`], 401],
    ["the start of a token", [`Authorization: Bearer ${TOKEN.slice(0, -1)}`], 401],
    ["another case", [`Authorization: Bearer ${TOKEN.toUpperCase()}`], 401],
    ["the token without a scheme", [`Authorization: ${TOKEN}`], 401],
    ["a 15 KB token", [`Authorization: Bearer ${"a".repeat(15_000)}`], 401],
    ["a non-ASCII token", ["Authorization: Bearer \u00fc\u00ff\u0080"], 401],
  ];
  for (const [what, headers, status] of cases) {
    it(`${what}: ${status}`, async () => {
      const { port } = await startService();
      const response = await rawRequest(port, Buffer.from(agentRequest(...headers), "latin1"));
      assert.equal(response.status, status, response.body);
      if (status === 401) {
        const { ok, error, code, request_id } = JSON.parse(response.body);
        assert.deepEqual({ ok, error, code }, { ok: false, error: "unauthorized", code: "unauthorized" });
        assert.equal(request_id, response.headers["x-request-id"]);
        assert.equal(response.headers["www-authenticate"], "Bearer");
      }
    });
  }

  it("a token of 16 KB is wrong, one of 20 KB too large", async () => {
    const { port } = await startService();
    for (const [bytes, status] of [
      [16 * 1024, 401],
      [20_000, 431],
    ] as const) {
      const response = await rawRequest(port, agentRequest(`Authorization: Bearer ${"a".repeat(bytes)}`));
      assert.deepEqual([response.status, JSON.parse(response.body).ok], [status, false]);
    }
  });

  it("no configured token: 503, also to a request without one", async () => {
    for (const hooks_token of [undefined, null, "", "  \t", 123456, true, {}, [], ["", " ", 5]]) {
      const { url } = await startService({ config: { hooks_token } });
      for (const authorization of ["", "Bearer undefined", "Bearer "]) {
        const response = await fetch(`${url}/hooks/agent`, { method: "POST", headers: { authorization } });
        const { error, code } = (await response.json()) as Record<string, unknown>;
        assert.equal(response.status, 503);
        assert.deepEqual([error, code], ["hooks token is not configured", "hooks_not_configured"]);
      }
    }
  });

  it("warns of a configured token that is a number in YAML, without its value", async () => {
    for (const hooks_token of [123456, true, ["text", 123456]]) {
      const { log } = await startService({ config: { hooks_token } });
      assert.match(log(), /hooks_token: a value that is not text is ignored, put it in quotes/);
      assert.doesNotMatch(log(), /123456/);
    }
    for (const hooks_token of ["123456", null, ["text", ""]]) {
      assert.doesNotMatch((await startService({ config: { hooks_token } })).log(), /is not text/);
    }
  });

  it("trims the configured token, accepts every token of a list", async () => {
    const { port } = await startService({ config: { hooks_token: ["  new one\t", TOKEN] } });
    for (const token of ["new one", TOKEN]) {
      assert.equal((await rawRequest(port, agentRequest(`Authorization: Bearer ${token}`))).status, 200);
    }
  });

  it("accepts a non-ASCII token in UTF-8 and in Latin-1", async () => {
    const { port } = await startService({ config: { hooks_token: "schlüssel à" } });
    for (const encoding of ["utf8", "latin1"] as const) {
      const bytes = Buffer.from(agentRequest("x-compat-token: schlüssel à"), encoding);
      assert.equal((await rawRequest(port, bytes)).status, 200, encoding);
    }
  });

  it("refuses a token in the URL, right or wrong, on every guarded path", async () => {
    const { get, post } = await startService();
    for (const path of ["/api/stream", "/api/runs", "/api/run_status"]) {
      const response = await get(`${path}?token=${TOKEN}`);
      assert.equal(response.status, 400);
      assert.equal(((await response.json()) as { code: string }).code, "invalid_request");
    }
    assert.equal((await post(`/hooks/agent?token=${TOKEN}`, { message: "x" })).status, 400);
  });

  it("the token is in no log, response or metric", async () => {
    const { port, get, log, start } = await startService();
    await start("hello");
    await rawRequest(port, agentRequest(`Authorization: Bearer x${TOKEN}`));
    await get(`/api/runs?token=${TOKEN}`);
    await get(`/api/runs/${TOKEN}`);
    await get(`/hooks/${TOKEN}`);
    const metrics = await (await get("/metrics")).text();
    assert.match(log(), /"route":"agent"/);
    assert.ok(!log().includes(TOKEN), "the log holds no token");
    assert.ok(!metrics.includes(TOKEN), "the metrics hold no token");
  });
});

describe("token comparison", () => {
  it("takes equal time for a wrong first and a wrong last byte @alone", () => {
    const token = "k".repeat(4096);
    const tokens = createTokens(token);
    const first = ["authorization", `Bearer x${token.slice(1)}`];
    const last = ["authorization", `Bearer ${token.slice(1)}x`];
    const time = (headers: string[]) => {
      const start = process.cpuUsage();
      for (let i = 0; i < 200; i++) assert.equal(tokens.identify(headers), null);
      return cpuMsSince(start);
    };
    const rounds = Array.from({ length: 60 }, () => [time(first), time(last)] as const);
    const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;
    const ratio = median(rounds.map(([a]) => a)) / median(rounds.map(([, b]) => b));
    assert.ok(ratio > 0.8 && ratio < 1.25, `the times differ by a factor of ${ratio.toFixed(3)}`);
  });

  it("ids of tokens are not plain digests", () => {
    const one = createTokens(["a", "b"]);
    const id = one.identify(["x-compat-token", "b"]);
    assert.match(String(id), /^[0-9a-f]{16}$/);
    assert.notEqual(id, one.identify(["x-compat-token", "a"]));
    assert.equal(id, createTokens("b").identify(["Authorization", "Bearer b"]));
  });
});

describe("signed URL and the wall clock", () => {
  const startService = serviceStarter();
  const DAY = 24 * 3600 * 1000;

  it("is valid for its full time after the clock was set", async () => {
    for (const jump of [-400 * DAY, 400 * DAY]) {
      const clock = new FakeClock();
      const service = await startService({ clock });
      clock.jumpWall(jump);
      const { stream_url } = await service.start("x");
      const status = async () => (await fetch(service.url + stream_url, { method: "HEAD" })).status;
      assert.equal(await status(), 200, `${jump / DAY} days`);
      await clock.advance(23 * 3600 * 1000);
      assert.equal(await status(), 200);
      // the longest wait, three attempts and the delays between them
      await clock.advance(6 * 3600 * 1000);
      assert.equal(await status(), 401, `${jump / DAY} days`);
    }
  });

  it("is valid, and a date, for the longest times that the configuration takes", async () => {
    const seconds = 876_000 * 3600;
    const limits = { retention_hours: 876_000, run_seconds: seconds, queue_seconds: seconds, delay_seconds: seconds };
    const service = await startService({ config: { limits, retries: { attempts: 100 } } });
    const far = { message: "x", delaySeconds: seconds - 1, deadlineSeconds: seconds };
    assert.equal((await service.post("/hooks/agent", far)).status, 200);
    const { stream_url } = await service.start("x");
    assert.equal((await fetch(service.url + stream_url, { method: "HEAD" })).status, 200);
    assert.equal((await service.get("/api/runs")).status, 200);
  });

  it("is unchanged in a replay after the clock was set back", async () => {
    const clock = new FakeClock();
    const { start } = await startService({ clock });
    clock.jumpWall(-3 * DAY);
    const first = await start("x", { idempotencyKey: "k" });
    clock.jumpWall(-3 * DAY);
    assert.deepEqual(await start("x", { idempotencyKey: "k" }), first);
  });

  it("is valid for a service that started after the clock was set back", async () => {
    const store = { ...createMemoryStore(), close: async () => undefined };
    const before = await startService({ clock: new FakeClock(Date.UTC(2030, 0, 1)), store });
    const old = await before.start("x");
    await until(async () => (await before.hooks.runs.get(old.run_id)).finishedAt !== null);
    await before.hooks.close(0);
    const after = await startService({ clock: new FakeClock(Date.UTC(2025, 0, 1)), store });
    const { stream_url } = await after.start("x");
    assert.equal((await fetch(after.url + stream_url)).status, 200);
    assert.equal((await fetch(after.url + old.stream_url)).status, 200);
  });
});
