import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { bearer, serviceStarter, TOKEN, until } from "../../../../../helpers/hooks/hook-service.js";
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
