import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { LatentkitError } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { bearer, serviceStarter, TOKEN, until } from "../../../../../helpers/hooks/hook-service.js";
import { newRun } from "../../../../../helpers/hooks/new-run.js";
import { RawClient, requestText } from "../../../../../helpers/http/raw-http.js";

const startService = serviceStarter();

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;
const codeOf = async (response: Response) => [response.status, (await json(response)).code];

describe("POST /hooks/agent", () => {
  for (const path of ["/hooks/agent", "/api/hooks/agent"]) {
    it(`${path} responds with the payload of a stored run`, async () => {
      const { post, hooks } = await startService();
      const response = await post(path, { message: "hello", name: " CI ", extra: { ignored: true } });
      const payload = await json(response);
      assert.equal(response.status, 200);
      assert.deepEqual(Object.keys(payload), [
        "ok",
        "run_id",
        "status",
        "session_key",
        "created_at",
        "stream_url",
        "status_url",
      ]);
      assert.match(String(payload.run_id), UUID_V4);
      assert.deepEqual([payload.ok, payload.status, payload.session_key], [true, "queued", "hook:ingress"]);
      assert.equal(response.headers.get("location"), `/api/runs/${payload.run_id}`);
      assert.equal(payload.status_url, `/api/runs/${payload.run_id}`);
      assert.equal(response.headers.get("idempotent-replayed"), null);
      assert.equal(response.headers.get("cache-control"), "no-store");
      const run = await hooks.runs.get(String(payload.run_id));
      assert.deepEqual([run.message, run.name, run.origin, run.timeoutSeconds], ["hello", "CI", "agent", 600]);
      assert.equal(new Date(run.createdAt).toISOString(), payload.created_at);
    });
  }

  it("refuses a message that the agent refuses, without a run, a key or a start of the rate", async () => {
    const check = (message: string) => {
      if (message === "bug") throw new TypeError("a secret");
      if (message !== "good") throw new LatentkitError("usage.invalid", 'Message, property "a": expected b.');
    };
    const agent = Object.assign(async () => ({ response: "" }), { check });
    const { post, hooks } = await startService({ agent, config: { limits: { starts_per_10s: 1 } } });
    const headers = { "idempotency-key": "one" };
    for (let i = 0; i < 3; i++) {
      const refused = await post("/hooks/agent", { message: "bad" }, headers);
      assert.deepEqual([refused.status, (await json(refused)).error], [400, 'Message, property "a": expected b.']);
    }
    const failed = await post("/hooks/agent", { message: "bug" });
    assert.deepEqual([failed.status, (await json(failed)).error], [500, "internal error"]);
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 0);
    assert.equal((await post("/hooks/agent", { message: "good" }, headers)).status, 200);
  });

  it("hands the trace of its request to the agent, and takes none that is not one", async () => {
    const seen: unknown[] = [];
    const agent = async ({ traceparent }: { traceparent?: string }) => {
      seen.push(traceparent);
      return { response: "" };
    };
    const { post } = await startService({ agent });
    const own = `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`;
    const others = [
      "00-0-0-0",
      `01${own.slice(2)}`,
      own.toUpperCase(),
      `${own}-x`,
      own.replace(/b7.*31/, "0".repeat(16)),
    ];
    for (const traceparent of [own, ...others]) {
      const before = seen.length;
      assert.equal((await post("/hooks/agent", { message: "x" }, { traceparent })).status, 200);
      await until(() => seen.length > before, "the run");
    }
    assert.deepEqual(seen, [own, ...others.map(() => undefined)]);
  });

  it("takes a priority, which counts for the idempotency key", async () => {
    const { post, get } = await startService();
    const send = (priority: unknown) => post("/hooks/agent", { message: "x", priority }, { "idempotency-key": "k" });
    const { run_id } = (await (await send(-100)).json()) as { run_id: string };
    assert.equal(((await (await get(`/api/runs/${run_id}`)).json()) as { priority: number }).priority, -100);
    assert.equal((await send(-99)).status, 422);
    for (const [priority, error] of [
      [101, "priority: expected at most 100"],
      [-101, "priority: expected -100 or more"],
      [0.5, "priority: expected an integer"],
      ["5", "priority: expected an integer"],
    ] as const) {
      const response = await send(priority);
      assert.equal(response.status, 400);
      assert.equal(((await response.json()) as { error: string }).error, error);
    }
  });

  it("takes delay, deadline and tags, which count for the idempotency key", async () => {
    const { post, get } = await startService();
    const terms = { delaySeconds: 60, deadlineSeconds: 90, tags: ["a", "b"] };
    const send = (more: object) =>
      post("/hooks/agent", { message: "x", ...terms, ...more }, { "idempotency-key": "k" });
    const { run_id } = (await (await send({})).json()) as { run_id: string };
    const run = (await (await get(`/api/runs/${run_id}`)).json()) as Record<string, string>;
    const seconds = (time: string | undefined) => (Date.parse(time!) - Date.parse(run.created_at!)) / 1000;
    assert.deepEqual([run.status, run.tags], ["queued", ["a", "b"]]);
    assert.equal(Math.round(seconds(run.due_at)), 60);
    assert.equal(Math.round(seconds(run.deadline_at)), 90);
    assert.equal((await send({})).headers.get("idempotent-replayed"), "true");
    for (const more of [{ delaySeconds: 61 }, { deadlineSeconds: 91 }, { tags: ["a"] }]) {
      assert.equal((await send(more)).status, 422, JSON.stringify(more));
    }
  });

  for (const [terms, error] of [
    [{ delaySeconds: -1 }, "delaySeconds: expected 0 or more"],
    [{ delaySeconds: 604_801 }, "delaySeconds: expected at most 604800"],
    [{ deadlineSeconds: 0 }, "deadlineSeconds: expected 1 or more"],
    [
      { delaySeconds: 9, deadlineSeconds: 9 },
      "deadlineSeconds: expected a number above delaySeconds (9), at most 604800",
    ],
    [{ tags: "a" }, "tags: expected a list of texts"],
    [{ tags: [1] }, "tags.0: expected texts of 1 to 64 characters without control characters"],
    [{ tags: ["a", " "] }, "tags.1: expected texts of 1 to 64 characters without control characters"],
    [{ tags: ["a\n"] }, "tags.0: expected texts of 1 to 64 characters without control characters"],
    [{ tags: ["x".repeat(65)] }, "tags.0: expected texts of 1 to 64 characters without control characters"],
    [{ tags: new Array(17).fill("x") }, "tags: expected at most 16"],
  ] as const) {
    it(`${JSON.stringify(terms).slice(0, 50)}: 400`, async () => {
      const { post } = await startService();
      const response = await post("/hooks/agent", { message: "x", ...terms });
      assert.deepEqual([response.status, ((await response.json()) as { error: string }).error], [400, error]);
    });
  }

  it("accepts a time-out up to an hour", async () => {
    const { start, hooks } = await startService();
    assert.equal((await hooks.runs.get((await start("x", { timeoutSeconds: 3600 })).run_id)).timeoutSeconds, 3600);
  });
});

describe("POST /hooks/wake", () => {
  for (const mode of [undefined, null, "now"]) {
    it(`starts a run with mode ${mode}`, async () => {
      const { post, hooks } = await startService();
      const response = await post("/api/hooks/wake", { text: "wake up", mode });
      const { run_id, session_key } = await json(response);
      assert.deepEqual([response.status, session_key], [200, "hook:ingress"]);
      const run = await hooks.runs.get(String(run_id));
      assert.deepEqual([run.message, run.origin], ["wake up", "wake"]);
    });
  }

  it("mode next-heartbeat queues an event for the heartbeat's run", async () => {
    const { post, hooks } = await startService();
    const responses = [];
    for (const text of ["one", "two"]) {
      responses.push(await json(await post("/hooks/wake", { text, mode: "next-heartbeat" })));
    }
    assert.deepEqual(
      responses.map(({ chat_id: _chat, event_id: _event, ...rest }) => rest),
      [1, 2].map((pending) => ({
        ok: true,
        mode: "next-heartbeat",
        queued: true,
        session_key: "hook:ingress",
        pending,
      })),
    );
    assert.ok(responses.every(({ chat_id, event_id }) => Number.isInteger(chat_id) && Number.isInteger(event_id)));
    assert.equal(responses[0]!.chat_id, responses[1]!.chat_id);
    assert.deepEqual((await hooks.runs.list({ limit: 10 })).runs, []);
    const { runs } = await hooks.heartbeat();
    assert.equal(runs.length, 1);
    assert.equal((await hooks.runs.get(runs[0]!.runId)).message, "System event: one\nSystem event: two");
    assert.deepEqual((await hooks.heartbeat()).runs, []);
  });

  it("drops unknown fields of a wake", async () => {
    const { post, hooks } = await startService();
    for (const mode of ["now", "next-heartbeat"]) {
      const response = await post("/hooks/wake", { text: "x", mode, name: 5, message: [], other: { deep: null } });
      assert.equal(response.status, 200, await response.text());
    }
    assert.equal((await hooks.runs.list({ limit: 1 })).runs[0]!.name, null);
  });

  for (const mode of ["later", "NOW", "", 5, ["now"]]) {
    it(`mode ${JSON.stringify(mode)}: 400`, async () => {
      const { post } = await startService();
      assert.deepEqual(await codeOf(await post("/hooks/wake", { text: "x", mode })), [400, "invalid_request"]);
    });
  }

  it("beyond the pending events of a session: 429", async () => {
    const { post } = await startService({ config: { limits: { pending_wakes_per_session: 2 } } });
    const wake = () => post("/hooks/wake", { text: "x", mode: "next-heartbeat" });
    assert.deepEqual([(await wake()).status, (await wake()).status], [200, 200]);
    assert.equal((await wake()).status, 429);
  });

  it("beyond the bytes of pending events: 429, except for a replay", async () => {
    for (const key of ["pending_wake_bytes_per_session", "pending_wake_bytes"]) {
      const { post } = await startService({ config: { limits: { [key]: 1000 } } });
      const wake = (length: number, idempotencyKey?: string) =>
        post("/hooks/wake", { text: "x".repeat(length), mode: "next-heartbeat", idempotencyKey });
      assert.equal((await wake(900, "k")).status, 200);
      const refused = await wake(99);
      assert.equal(refused.headers.get("retry-after"), "5");
      assert.deepEqual(await codeOf(refused), [429, "queue_full"]);
      assert.equal((await wake(900, "k")).status, 200);
      assert.equal((await json(await wake(90))).pending, 2);
    }
  });
});

describe("gate order", () => {
  const bad = { "content-type": "text/plain" };
  const wrong = { authorization: "Bearer wrong" };

  it("method, configuration, token, content type, size, JSON, fields, session, idempotency, rate", async () => {
    const off = await startService({ config: { hooks_token: undefined } });
    assert.equal((await off.post("/hooks/agent", "", { ...bad, ...wrong })).status, 503);
    const config = { limits: { body_bytes: 100, starts_per_10s: 1 } };
    const { post } = await startService({ config });
    const big = `{"message": ${" ".repeat(200)}`;
    assert.equal((await post("/hooks/agent", big, { ...bad, ...wrong })).status, 401);
    assert.equal((await post("/hooks/agent", big, bad)).status, 415);
    assert.equal((await post("/hooks/agent", big)).status, 413);
    assert.equal((await post("/hooks/agent", '{"message":')).status, 400);
    const both = await json(await post("/hooks/agent", { message: 5, sessionKey: "a" }));
    assert.equal(both.code, "invalid_request");
    const key = { "idempotency-key": "not visible\u00e9" };
    const session = await json(await post("/hooks/agent", { message: "x", sessionKey: "a" }, key));
    assert.equal(session.code, "session_key_override_disabled");
    assert.deepEqual(await codeOf(await post("/hooks/agent", { message: "x" }, key)), [400, "invalid_request"]);
    assert.equal((await post("/hooks/agent", { message: "x" })).status, 200);
    assert.deepEqual(await codeOf(await post("/hooks/agent", { message: "x" })), [429, "rate_limited"]);
  });

  it("a shutdown is checked after the token and before the body", async () => {
    const { post, get, hooks, start } = await startService();
    await start("hold");
    const closing = hooks.close(0.3);
    const response = await post("/hooks/agent", "no json", bad);
    assert.deepEqual(await codeOf(response), [503, "shutting_down"]);
    assert.ok(Number(response.headers.get("retry-after")) >= 1);
    assert.equal((await post("/hooks/agent", "", wrong)).status, 401);
    assert.deepEqual(await codeOf(await get("/ready")), [503, "shutting_down"]);
    assert.equal((await get("/health")).status, 200);
    await closing;
  });
});

describe("idempotency", () => {
  const key = (value: string) => ({ "idempotency-key": value });

  it("100 parallel posts with one key: one run, one response", async () => {
    const { post, hooks } = await startService();
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        post(i % 2 ? "/hooks/agent" : "/api/hooks/agent", { message: "x" }, key("k")),
      ),
    );
    const bodies = await Promise.all(responses.map((response) => response.text()));
    assert.ok(responses.every(({ status }) => status === 200));
    assert.equal(new Set(bodies).size, 1, "all responses are the same");
    assert.equal(responses.filter(({ headers }) => headers.get("idempotent-replayed") === "true").length, 99);
    assert.equal((await hooks.runs.list({ limit: 1000 })).runs.length, 1);
  });

  it("reads Idempotency-Key, else webhook-id, else the body's key", async () => {
    const { post } = await startService();
    const id = async (headers: Record<string, string>, body: object) =>
      (await json(await post("/hooks/agent", { message: "x", ...body }, headers))).run_id;
    const byHeader = await id({ "idempotency-key": "a", "webhook-id": "b" }, { idempotencyKey: "c" });
    assert.equal(await id({ "webhook-id": "a" }, { idempotencyKey: "c" }), byHeader);
    assert.equal(await id({}, { idempotencyKey: "a" }), byHeader);
    assert.notEqual(await id({ "webhook-id": "b" }, {}), byHeader);
  });

  it("another payload with the key: 422; irrelevant differences do not count", async () => {
    const { post } = await startService();
    const first = await json(await post("/hooks/agent", '{"message":"x","name":"n"}', key("k")));
    const same = await json(await post("/hooks/agent", '{ "name":"n", "other":1, "message":"\\u0078" }', key("k")));
    assert.equal(same.run_id, first.run_id);
    for (const other of [
      { message: "y", name: "n" },
      { message: "x" },
      { message: "x", name: "n", timeoutSeconds: 5 },
    ]) {
      assert.deepEqual(await codeOf(await post("/hooks/agent", other, key("k"))), [422, "idempotency_mismatch"]);
    }
  });

  it("holds for one token and one endpoint", async () => {
    const { post } = await startService({ config: { hooks_token: [TOKEN, "second"] } });
    const ask = async (path: string, headers = {}) =>
      (await json(await post(path, { message: "x", text: "x" }, { ...key("k"), ...headers }))).run_id;
    const ids = [await ask("/hooks/agent"), await ask("/hooks/wake")];
    ids.push(await ask("/hooks/agent", { authorization: "Bearer second" }));
    assert.equal(new Set(ids).size, 3);
  });

  it("works for next-heartbeat, and distinguishes modes", async () => {
    const { post, hooks } = await startService();
    const wake = (mode: string) => post("/hooks/wake", { text: "x", mode }, key("k"));
    const first = await wake("next-heartbeat");
    const second = await wake("next-heartbeat");
    assert.equal(await second.text(), await first.text());
    assert.equal(second.headers.get("idempotent-replayed"), "true");
    assert.equal((await wake("now")).status, 422);
    const { runs } = await hooks.heartbeat();
    assert.equal(runs[0]!.events, 1);
  });

  it("refusals are not stored, and a replay passes an exhausted rate", async () => {
    const { post } = await startService({ config: { limits: { starts_per_10s: 1 } } });
    assert.equal((await post("/hooks/agent", { message: " " }, key("k"))).status, 400);
    assert.equal((await post("/hooks/agent", { message: "x" }, key("k"))).status, 200);
    assert.equal((await post("/hooks/agent", { message: "y" }, key("l"))).status, 429);
    const replay = await post("/hooks/agent", { message: "x" }, key("k"));
    assert.deepEqual([replay.status, replay.headers.get("idempotent-replayed")], [200, "true"]);
  });

  for (const bad of ["", " ", "a b", "\u00e9", "k".repeat(256), "a, b"]) {
    it(`the key ${JSON.stringify(bad.slice(0, 8))}: 400`, async () => {
      const { post } = await startService();
      assert.equal((await post("/hooks/agent", { message: "x" }, key(bad))).status, 400);
      assert.equal((await post("/hooks/agent", { message: "x", idempotencyKey: bad })).status, 400);
    });
  }

  it("a client that left after the commit finds its run by the key", async () => {
    const { port, post, hooks } = await startService();
    const client = new RawClient(port);
    const headers = [`Authorization: Bearer ${TOKEN}`, "Content-Type: application/json", "Idempotency-Key: k"];
    client.send(requestText("POST /hooks/agent", headers, '{"message":"x"}'));
    await until(async () => (await hooks.runs.list({ limit: 1 })).runs.length === 1);
    client.destroy();
    const response = await post("/hooks/agent", { message: "x" }, key("k"));
    assert.equal(response.headers.get("idempotent-replayed"), "true");
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 1);
  });
});

describe("rates and queues", () => {
  it("limit starts per token and per session, on the monotonic clock", async () => {
    const clock = new FakeClock();
    const config = {
      hooks_allow_request_session_key: true,
      limits: { starts_per_10s: 4, session_starts_per_10s: 2, body_bytes: 1000 },
    };
    const { post } = await startService({ clock, config });
    const start = async (session: string) =>
      (await post("/hooks/agent", { message: "x", sessionKey: `hook:${session}` })).status;
    assert.deepEqual([await start("a"), await start("a"), await start("a")], [200, 200, 429]);
    assert.deepEqual([await start("b"), await start("c"), await start("d")], [200, 200, 429]);
    clock.jumpWall(60_000);
    assert.equal(await start("a"), 429);
    await clock.advance(10_000);
    assert.equal(await start("a"), 200);
  });

  it("a wake for the next heartbeat does not count as a start", async () => {
    const { post } = await startService({ config: { limits: { starts_per_10s: 2, session_starts_per_10s: 2 } } });
    const wake = async (mode: string) => (await post("/hooks/wake", { text: "x", mode })).status;
    for (let i = 0; i < 5; i++) assert.equal(await wake("next-heartbeat"), 200);
    assert.deepEqual([await wake("now"), await wake("now"), await wake("now")], [200, 200, 429]);
    assert.equal(await wake("next-heartbeat"), 200);
  });

  it("the 101st queued run of a session: 429, nothing stored", async () => {
    const { post, hooks } = await startService();
    const statuses: number[] = [];
    for (let i = 0; i < 102; i++) statuses.push((await post("/hooks/agent", { message: "hold" })).status);
    assert.deepEqual(statuses.slice(-2), [200, 429]);
    assert.equal((await hooks.runs.list({ limit: 1000 })).runs.length, 101);
    const full = await post("/hooks/agent", { message: "hold" });
    assert.deepEqual(await codeOf(full), [429, "queue_full"]);
    assert.ok(Number(full.headers.get("retry-after")) >= 1);
  });

  it("a refused start does not count", async () => {
    const { post } = await startService({ config: { limits: { session_starts_per_10s: 1 } } });
    assert.equal((await post("/hooks/agent", { message: "x" })).status, 200);
    const refused = await post("/hooks/agent", { message: "x" }, bearer);
    const retry = Number(refused.headers.get("retry-after"));
    assert.ok(refused.status === 429 && retry >= 1 && retry <= 10);
  });
});

describe("POST /api/runs/{id}/again", () => {
  const startService = serviceStarter();

  const json = async (response: Response) => (await response.json()) as Record<string, unknown>;

  it("starts a new run with message, name, session and time of the earlier one", async () => {
    const config = { hooks_allow_request_session_key: true };
    const { start, post, hooks } = await startService({ config });
    const first = await start("a lake", { name: "CI", sessionKey: "hook:x", timeoutSeconds: 77, priority: 3 });
    // neither a body nor a content type
    const response = await post(`/api/runs/${first.run_id}/again`, "", { "content-type": "" });
    const payload = await json(response);
    assert.equal(response.status, 200, String(payload.error));
    assert.notEqual(payload.run_id, first.run_id);
    const { message, name, sessionKey, timeoutSeconds, origin, priority } = await hooks.runs.get(
      String(payload.run_id),
    );
    assert.deepEqual([message, name, sessionKey, timeoutSeconds, origin], ["a lake", "CI", "hook:x", 77, "agent"]);
    assert.equal(priority, 3);
    assert.equal(response.headers.get("location"), `/api/runs/${payload.run_id}`);
  });

  it("takes a changed message, name and time, and waits for the result", async () => {
    const { start, post, hooks } = await startService();
    const { run_id } = await start("a lake", { name: "CI" });
    const changed = { message: "a fox", name: "me", timeoutSeconds: 9, priority: -7 };
    const again = await json(await post(`/api/runs/${run_id}/again`, changed, { prefer: "wait=10" }));
    assert.deepEqual(
      [again.status, again.response, again.name, again.timeout_seconds, again.priority],
      ["succeeded", "a fox", "me", 9, -7],
    );
    assert.equal((await hooks.runs.get(run_id)).message, "a lake");
  });

  it("starts one run for each key, and refuses the key with another payload", async () => {
    const { start, post, hooks } = await startService();
    const [one, two] = [await start("one"), await start("two")];
    const again = (id: string, body: object) => post(`/api/runs/${id}/again`, body, { "idempotency-key": "k" });
    const ids = [await again(one.run_id, {}), await again(one.run_id, {}), await again(two.run_id, {})];
    const [first, same, other] = await Promise.all(ids.map(async (response) => (await json(response)).run_id));
    assert.equal(first, same);
    assert.notEqual(first, other);
    assert.equal((await again(one.run_id, { message: "another" })).status, 422);
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 4);
  });

  it("runs a wake and a heartbeat again without the agent's check of messages", async () => {
    const check = (message: string) => {
      throw new Error(`checked ${message}`);
    };
    const agent = Object.assign(async () => ({ response: "" }), { check });
    const { post, hooks } = await startService({ agent });
    await post("/hooks/wake", { text: "up", mode: "next-heartbeat" });
    const { runs } = await hooks.heartbeat();
    const payload = await json(await post(`/api/runs/${runs[0]!.runId}/again`, {}));
    const run = await hooks.runs.get(String(payload.run_id));
    assert.deepEqual([run.message, run.origin], ["System event: up", "wake"]);
    assert.equal((await post(`/api/runs/${run.id}/again`, { message: "x" })).status, 500);
  });

  it("holds the session policy and the limits of starts", async () => {
    const limits = { starts_per_10s: 2 };
    const { start, post } = await startService({ config: { limits } });
    const { run_id } = await start("x");
    const denied = await post(`/api/runs/${run_id}/again`, { sessionKey: "hook:y" });
    assert.deepEqual([denied.status, (await json(denied)).code], [400, "session_key_override_disabled"]);
    assert.equal((await post(`/api/runs/${run_id}/again`, {})).status, 200);
    assert.equal((await post(`/api/runs/${run_id}/again`, {})).status, 429);
  });

  for (const [what, path, body, status] of [
    ["an unknown run", "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", {}, 404],
    ["__proto__", "__proto__", {}, 404],
    ["a blank message", undefined, { message: " " }, 400],
    ["a message that is no text", undefined, { message: 5 }, 400],
    ["no object", undefined, [], 400],
    ["broken JSON", undefined, "{", 400],
  ] as const) {
    it(`${what}: ${status}`, async () => {
      const { start, post, hooks } = await startService();
      const { run_id } = await start("x");
      assert.equal((await post(`/api/runs/${path ?? run_id}/again`, body)).status, status);
      assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 1);
    });
  }

  it("refuses a run of a batch, which no request starts", async () => {
    const store = createMemoryStore();
    const { post, hooks } = await startService({ store });
    await hooks.runs.open();
    const id = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    await store.createRun(newRun(id, { sessionKey: "batch-a-0", origin: "batch", createdAt: 1, createdMark: 1 }));
    const response = await post(`/api/runs/${id}/again`, {});
    assert.equal(response.status, 400);
    assert.match(await response.text(), /a batch run cannot be started again here: use `latentkit render --store`/);
  });

  it("needs the token", async () => {
    const { start, url } = await startService();
    const { run_id, stream_url } = await start("x");
    const signed = stream_url.slice(stream_url.indexOf("?"));
    assert.equal((await fetch(`${url}/api/runs/${run_id}/again${signed}`, { method: "POST" })).status, 401);
  });
});

/** Writes its text and the message to a file of the graph's name. */
const graph = (name: string, text = "{{message}}") => ({
  1: { class_type: "PrimitiveInt", inputs: { value: 7 }, _meta: { title: "Steps" } },
  2: {
    class_type: "ext saveTextLazy",
    inputs: { text, output_file_path: ".", file_name: name, file_extension: "txt", overwrite: true },
  },
});

describe("graphs by their names", () => {
  const folder = temporaryFolder();
  const open = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  const agentOf = (graphs: Record<string, object>) => {
    const agent = createGraphAgent({ graphs, outputDir: join(folder(), "out"), threads: 1 });
    agents.push(agent);
    return agent;
  };
  type Run = { status: string; done: boolean; files: { name: string }[] };
  const ended = async (service: Awaited<ReturnType<typeof open>>, { status_url }: { status_url: string }) => {
    let run: Run | undefined;
    await until(async () => {
      run = (await (await service.get(status_url)).json()) as Run;
      return run.done;
    });
    return run!;
  };

  it("a request names its graph; without a name it gets the first", async () => {
    const service = await open({ agent: agentOf({ portrait: graph("portrait"), lake: graph("lake") }) });
    const named = await ended(service, await service.start("hello", { graph: "lake" }));
    assert.deepEqual([named.status, named.files.map(({ name }) => name)], ["succeeded", ["lake.txt"]]);
    const first = await ended(service, await service.start("hello"));
    assert.deepEqual(
      first.files.map(({ name }) => name),
      ["portrait.txt"],
    );
  });

  it("an unknown name is refused with those that exist, and nothing runs", async () => {
    const service = await open({ agent: agentOf({ portrait: graph("portrait"), lake: graph("lake") }) });
    const response = await service.post("/hooks/agent", { message: "x", graph: "portait" });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: string };
    assert.equal(error, 'graph: expected one of portrait, lake, received "portait". Did you mean portrait?');
    const { runs } = (await (await service.get("/api/runs")).json()) as { runs: unknown[] };
    assert.equal(runs.length, 0);
    for (const name of ["__proto__", "constructor", "x".repeat(201), 1]) {
      assert.equal((await service.post("/hooks/agent", { message: "x", graph: name })).status, 400);
    }
    const custom = await open();
    const none = await custom.post("/hooks/agent", { message: "x", graph: "lake" });
    assert.match(((await none.json()) as { error: string }).error, /^graph: this agent has no graphs/);
  });

  it("GET /api/graphs lists them with their schemas, to callers with the token", async () => {
    const service = await open({ agent: agentOf({ portrait: graph("portrait"), lake: graph("lake", "same") }) });
    assert.equal((await fetch(`${service.url}/api/graphs`)).status, 401);
    const { graphs } = (await (await service.get("/api/graphs")).json()) as {
      graphs: { name: string; default: boolean; schema: { required: string[]; properties: object } }[];
    };
    assert.deepEqual(
      graphs.map(({ name, default: isDefault, schema }) => [name, isDefault, schema.required]),
      [
        ["portrait", true, ["message"]],
        ["lake", false, []],
      ],
    );
    assert.deepEqual(Object.keys(graphs[0]!.schema.properties), ["message", "Steps"]);
  });

  it("the same key with another graph is another payload", async () => {
    const service = await open({ agent: agentOf({ a: graph("a"), b: graph("b") }) });
    const key = { "idempotency-key": "k" };
    assert.equal((await service.post("/hooks/agent", { message: "x", graph: "a" }, key)).status, 200);
    assert.equal((await service.post("/hooks/agent", { message: "x", graph: "b" }, key)).status, 422);
  });

  it("a run keeps its graph over a reload, also when it is started again", async () => {
    const agent = agentOf({ a: graph("old") });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = Object.assign(
      async (...args: Parameters<typeof agent>) => {
        await held;
        return agent(...args);
      },
      { check: agent.check, graphs: agent.graphs },
    );
    const service = await open({ agent: slow });
    const accepted = await service.start("x", { graph: "a" });
    agent.reload({ graphs: { a: graph("new"), b: graph("b") } });
    const later = await service.start("y", { graph: "a" });
    release();
    assert.deepEqual(
      (await ended(service, accepted)).files.map(({ name }) => name),
      ["old.txt"],
    );
    assert.deepEqual(
      (await ended(service, later)).files.map(({ name }) => name),
      ["new.txt"],
    );
    const again = await service.post(`/api/runs/${accepted.run_id}/again`, {});
    const repeated = await ended(service, (await again.json()) as { status_url: string });
    assert.deepEqual(
      repeated.files.map(({ name }) => name),
      ["old.txt"],
    );
    const other = await service.post(`/api/runs/${accepted.run_id}/again`, { graph: "b" });
    const changed = await ended(service, (await other.json()) as { status_url: string });
    assert.deepEqual(
      changed.files.map(({ name }) => name),
      ["b.txt"],
    );
  });

  describe("a message that its graph has no use for", () => {
    const set = graph("set", "{{style}}");
    // neither a placeholder nor a titled primitive
    const fixed = { 2: graph("fixed", "same")[2] };
    const signed = (body: string, keys: object) => {
      const mac = createHmac("sha256", SECRET).update(body).digest("hex");
      return { "x-hub-signature-256": `sha256=${mac}`, ...keys };
    };
    const SECRET = "0123456789abcdef";
    const start = (placeholders = { message: "{{/text}}" }) => {
      const incoming = { it: { signature: "github", secrets: SECRET, placeholders } } as const;
      return open({ agent: agentOf({ prompt: graph("prompt"), set, fixed }), config: { incoming } });
    };
    const refusal = async (response: Response) => [
      response.status,
      ((await response.json()) as { error: string }).error,
    ];

    it("is refused at every door before there is a run", async () => {
      const service = await start({ text: "{{/text}}" } as never);
      const body = JSON.stringify({ text: "x" });
      const unknown = 'the graph has no key "stile"; it takes "message", "Steps".';
      const text = 'the graph needs a value for {{style}}, received plain text; it takes "style", "Steps".';
      const none = 'the graph takes no message; send "{}" to render it as it is.';
      const stile = '{"message": "x", "stile": "y"}';
      for (const [path, request, sentence, headers] of [
        ["/hooks/agent", { message: stile }, `Message: ${unknown}`],
        ["/api/hooks/agent", { message: "x", graph: "set" }, `Message: ${text}`],
        ["/hooks/agent", { message: "x", graph: "fixed" }, `Message: ${none}`],
        ["/hooks/agent", { message: '{"message": "x"}', graph: "fixed" }, `Message: ${none}`],
        ["/hooks/wake", { text: stile }, `Message: ${unknown}`],
        ["/hooks/group", { items: [{ message: "x" }, { message: stile }] }, `items.1: Message: ${unknown}`],
        ["/hooks/group", { items: [{ message: "x" }], defaults: { graph: "fixed" } }, `items.0: Message: ${none}`],
        [
          "/hooks/in/it",
          body,
          'Message: the graph needs a value for {{message}}, received a JSON object with "text"; it takes "message", "Steps".',
          signed(body, {}),
        ],
      ] as [string, object | string, string, Record<string, string>?][]) {
        // a refused request keeps no key: the next one is refused too
        for (let i = 0; i < 2; i++) {
          const response = await service.post(path, request, { "idempotency-key": "k", ...headers });
          assert.deepEqual(await refusal(response), [400, sentence], path);
        }
      }
      assert.equal((await service.hooks.runs.list({ limit: 10 })).runs.length, 0);
      const { status, files } = await ended(service, await service.start("{}", { graph: "fixed" }));
      assert.deepEqual([status, files.map(({ name }) => name)], ["succeeded", ["fixed.txt"]]);
    });

    it("is refused when a run is started again, also one of a graph that takes another", async () => {
      const service = await start();
      const { run_id } = await service.start("x");
      const again = (body: object) => service.post(`/api/runs/${run_id}/again`, body);
      assert.match(String((await refusal(await again({ message: '{"stile": "y"}' })))[1]), /\{\{message\}\}/);
      assert.match(String((await refusal(await again({ graph: "fixed" })))[1]), /takes no message/);
      assert.equal((await again({})).status, 200);
    });

    it("an earlier run of a job takes neither a message nor another graph without one", async () => {
      const agent = agentOf({ prompt: graph("prompt") });
      const service = await open({ agent, config: { comfy_api: true } });
      const job = await service.post("/api/v2/jobs", { workflow: fixed });
      const { id } = (await job.json()) as { id: string };
      const again = (body: object) => service.post(`/api/runs/${id}/again`, body);
      for (const [body, sentence] of [
        [{ message: "x" }, "Message: not allowed when the request brings its own graph."],
        [{ graph: "prompt" }, "message: required, the earlier run had none"],
      ] as const) {
        assert.deepEqual(await refusal(await again(body)), [400, sentence]);
      }
      for (const body of [{}, { message: "x", graph: "prompt" }]) assert.equal((await again(body)).status, 200);
    });

    it("fails a run that no request started, such as one of a heartbeat", async () => {
      const service = await open({ agent: agentOf({ fixed }) });
      assert.equal((await service.post("/hooks/wake", { text: "up", mode: "next-heartbeat" })).status, 200);
      const { runs } = await service.hooks.heartbeat();
      const { status } = await ended(service, { status_url: `/api/runs/${runs[0]!.runId}` });
      assert.equal(status, "failed");
    });

    it("is told at the start, of graphs and of senders", async () => {
      const service = await start({ text: "{{/text}}" } as never);
      const warnings = service
        .log()
        .split("\n")
        .filter((line) => line.includes('"level":40'));
      assert.deepEqual(
        warnings.map((line) => (JSON.parse(line) as { msg: string }).msg),
        [
          'graph "fixed" has nothing to fill: send "{}" as the message, others are refused',
          'incoming.it: the default graph has no key "text", so every delivery is refused',
        ],
      );
      assert.doesNotMatch((await open()).log(), /has nothing to fill/);
    });
  });
});
