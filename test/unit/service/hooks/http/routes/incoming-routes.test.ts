import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import type { HookConfigInput } from "latentkit/hooks";
import type { SignatureScheme } from "#src/render/config/incoming.js";
import { FakeClock } from "../../../../../helpers/hooks/fake-clock.js";
import { type RunningService, serviceStarter } from "../../../../../helpers/hooks/hook-service.js";
import { SIGN } from "../../../../../helpers/hooks/sign.js";

const startService = serviceStarter();

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZg==";
type Incoming = NonNullable<HookConfigInput["incoming"]>;
type SenderInput = Incoming[string];

const GITHUB: SenderInput = { signature: "github", secrets: SECRET, message: "{{/issue/title}}" };
const ISSUE = { action: "opened", issue: { number: 7, title: "a quiet lake" }, repository: { full_name: "a/b" } };

const json = async (response: Response) => (await response.json()) as Record<string, unknown>;
const nowSeconds = () => Math.floor(Date.now() / 1000);

/** A service with one sender, "it", and a function that sends a signed request. */
async function oneSender(sender: SenderInput, more: Parameters<typeof startService>[0] = {}) {
  const clock = more.clock;
  const service = await startService({
    ...more,
    config: { incoming: { it: sender }, ...more.config } as HookConfigInput,
  });
  const send = (
    payload: unknown,
    options: { headers?: Record<string, string>; secret?: string; time?: number } = {},
  ) => {
    const body = typeof payload === "string" ? payload : JSON.stringify(payload);
    const time = options.time ?? (clock === undefined ? nowSeconds() : Math.floor(clock.now() / 1000));
    const signed = SIGN[sender.signature]({ secret: options.secret ?? SECRET, body, time });
    const headers = { "content-type": "application/json", ...signed, ...options.headers };
    return fetch(`${service.url}/hooks/in/it`, { method: "POST", headers, body });
  };
  return { ...service, send };
}

async function runOf({ hooks }: RunningService, response: Response) {
  assert.equal(response.status, 200, await response.clone().text());
  return hooks.runs.get(String((await json(response)).run_id));
}

describe("POST /hooks/in/NAME", () => {
  const payloads: Record<SignatureScheme, object> = {
    "standard-webhooks": { type: "order.paid", data: { text: "x" } },
    github: ISSUE,
    stripe: { id: "evt_1", type: "invoice.paid", data: { text: "x" } },
    slack: { type: "event_callback", event_id: "Ev1", event: { text: "x" } },
  };
  it("starts runs with the sender's priority and tags", async () => {
    const service = await oneSender({ ...GITHUB, priority: -5, tags: ["github", "issues"] });
    const { priority, tags } = await runOf(service, await service.send(ISSUE));
    assert.deepEqual([priority, tags], [-5, ["github", "issues"]]);
  });

  for (const signature of Object.keys(payloads) as SignatureScheme[]) {
    it(`${signature}: starts one run, however often a delivery comes`, async () => {
      const service = await oneSender({ signature, secrets: SECRET, message: "m" });
      const first = await service.send(payloads[signature]);
      const run = await runOf(service, first.clone());
      assert.deepEqual([run.message, run.origin, run.sessionKey], ["m", "agent", "hook:ingress"]);
      const again = await service.send(payloads[signature]);
      assert.equal(again.headers.get("idempotent-replayed"), "true");
      assert.deepEqual(await json(again), await json(first));
      assert.equal((await service.hooks.runs.list({ limit: 10 })).runs.length, 1);
    });

    it(`${signature}: refuses a request without a good signature, and starts nothing`, async () => {
      const service = await oneSender({ signature, secrets: SECRET, message: "m" });
      const refused = [
        await service.send(payloads[signature], { secret: "ZmVkY2JhOTg3NjU0MzIxMA==" }),
        await service.post("/hooks/in/it", payloads[signature]),
      ];
      for (const response of refused) {
        const { code, error } = await json(response);
        assert.deepEqual([response.status, code], [401, "unauthorized"]);
        assert.match(String(error), /signature|missing/);
      }
      assert.deepEqual((await service.hooks.runs.list({ limit: 10 })).runs, []);
      assert.ok(!service.log().includes(SECRET));
    });
  }

  it("knows a delivery of Svix by its own id", async () => {
    const { url, hooks } = await oneSender({ signature: "standard-webhooks", secrets: SECRET, message: "m" });
    const send = (id: string) => {
      const body = JSON.stringify(payloads["standard-webhooks"]);
      const signed = SIGN["standard-webhooks"]({ secret: SECRET, body, time: nowSeconds(), id });
      const svix = Object.entries(signed).map(([name, value]) => [name.replace("webhook", "svix"), value]);
      const headers = { "content-type": "application/json", ...Object.fromEntries(svix) };
      return fetch(`${url}/hooks/in/it`, { method: "POST", headers, body });
    };
    const responses = [await send("msg_1"), await send("msg_1"), await send("msg_2")];
    assert.deepEqual(
      responses.map(({ status, headers }) => [status, headers.get("idempotent-replayed")]),
      [
        [200, null],
        [200, "true"],
        [200, null],
      ],
    );
    assert.equal((await hooks.runs.list({ limit: 10 })).runs.length, 2);
  });

  it("takes the secrets of a rotation, and has the alias below /api", async () => {
    const other = "ZmVkY2JhOTg3NjU0MzIxMA==";
    const service = await oneSender({ ...GITHUB, secrets: [other, SECRET] });
    for (const secret of [SECRET, other]) assert.equal((await service.send(ISSUE, { secret })).status, 200);
    const body = JSON.stringify(ISSUE);
    const headers = { "content-type": "application/json", ...SIGN.github({ secret: SECRET, body, time: 0 }) };
    const alias = await fetch(`${service.url}/api/hooks/in/it`, { method: "POST", headers, body });
    assert.equal(alias.headers.get("idempotent-replayed"), "true");
  });

  it("refuses a signed request again after the replay window, by the service's clock", async () => {
    const clock = new FakeClock();
    const time = clock.now() / 1000;
    const service = await oneSender(
      { signature: "slack", secrets: SECRET, message: "m", replay_seconds: 60 },
      { clock },
    );
    assert.equal((await service.send({ event_id: "a" }, { time })).status, 200);
    await clock.advance(60_000);
    assert.equal((await service.send({ event_id: "b" }, { time })).status, 200);
    await clock.advance(1000);
    const late = await service.send({ event_id: "c" }, { time });
    assert.deepEqual([late.status, (await json(late)).error], [401, "the timestamp is too old"]);
  });

  it("maps payload and headers to message, session, key, name and placeholders", async () => {
    const service = await oneSender({
      ...GITHUB,
      message: "{{/issue/title}} ({{ X-GitHub-Event }} {{/action}})",
      placeholders: {
        seed: "{{/seed}}",
        big: "{{/big}}",
        on: "{{/on}}",
        tags: "{{/tags}}",
        first: "{{/tags/0}}",
        "~/": "{{/a~1b~0}}",
        steps: 4,
      },
      session_key: "hook:{{/repository/full_name}}",
      idempotency_key: "{{/repository/full_name}}#{{/issue/number}}",
      name: "{{/sender/login}}",
    });
    const body = `{"seed":18446744073709551615,"big":1.50,"on":true,"tags":["ü",2],"a/b~":"x{{/no}}","sender":{"login":"ada"},${JSON.stringify(ISSUE).slice(1)}`;
    const run = await runOf(service, await service.send(body));
    const expected =
      '{"message": "a quiet lake (issues opened)", "seed": 18446744073709551615, "big": 1.50, "on": true, "tags": "[\\"\\\\u00fc\\", 2]", "first": "\\u00fc", "~/": "x{{/no}}", "steps": 4}';
    assert.equal(run.message, expected);
    assert.deepEqual([run.sessionKey, run.name], ["hook:a/b", "ada"]);
    const again = await service.send(body, { headers: { "x-github-delivery": "another" } });
    assert.equal(again.headers.get("idempotent-replayed"), "true");
  });

  it("can pass the whole payload on", async () => {
    const service = await oneSender({ ...GITHUB, message: "{{}}" });
    const run = await runOf(service, await service.send(ISSUE));
    assert.deepEqual(JSON.parse(run.message), ISSUE);
  });

  for (const [what, sender, payload, sentence] of [
    ["a value that is missing", {}, { issue: {} }, "message: the payload has no value at /issue/title"],
    ["null", {}, { issue: { title: null } }, "message: the payload has no value at /issue/title"],
    ["a property of every object", { message: "{{/toString}}" }, {}, "message: the payload has no value at /toString"],
    ["a list's length", { message: "{{/l/length}}" }, { l: [1] }, "message: the payload has no value at /l/length"],
    ["a missing header", { message: "{{X-Kind}}" }, {}, "message: the request has no header X-Kind"],
    ["a placeholder", { placeholders: { a: "{{/x}}" } }, ISSUE, "placeholders.a: the payload has no value at /x"],
    ["a blank message", {}, { issue: { title: " " } }, "message: expected more than blanks"],
    ["a long name", { name: "{{/n}}" }, { ...ISSUE, n: "x".repeat(201) }, "name: expected at most 200 characters"],
    [
      "a long message",
      { message: "{{}}{{}}" },
      { t: "x".repeat(70_000) },
      "message: the filled-in texts are longer than limits.message_chars",
    ],
    [
      "a line break in the session",
      { session_key: "{{/s}}" },
      { ...ISSUE, s: "a\nb" },
      "session_key: control characters and lone surrogates are not allowed",
    ],
    [
      "a blank in the key",
      { idempotency_key: "{{/s}}" },
      { ...ISSUE, s: "a b" },
      "the idempotency key must be 1 to 255 visible ASCII characters",
    ],
    [
      "NaN in a template",
      { message: "{{/issue/number}}" },
      '{"issue":{"number":NaN}}',
      "message: the payload has NaN at /issue/number, expected a finite number",
    ],
    [
      "an infinity in the whole payload",
      { message: undefined, placeholders: { it: "{{}}" } },
      '{"a":[-Infinity]}',
      "placeholders.it: the payload has -Infinity at its root, expected a finite number",
    ],
    ["text for JSON", {}, "no json", "the body, line 1, column "],
    ["deep nesting", {}, "[".repeat(100_000), "the body, line 1, column "],
    ["a list", {}, [], "message: the payload has no value at /issue/title"],
  ] as [string, Partial<SenderInput>, unknown, string][]) {
    it(`${what}: 400, in one sentence`, async () => {
      const service = await oneSender({ ...GITHUB, ...sender });
      const response = await service.send(payload);
      const { code, error } = await json(response);
      assert.deepEqual([response.status, code], [400, "invalid_request"], String(error));
      assert.ok(String(error).startsWith(sentence), String(error));
      assert.deepEqual((await service.hooks.runs.list({ limit: 1 })).runs, []);
    });
  }

  it("takes NaN of Python where no template refers to it", async () => {
    const service = await oneSender({ ...GITHUB, when: { "/issue/number": 7 } });
    const payload = JSON.stringify({ ...ISSUE, score: 0 }).replace('"score":0', '"score":NaN');
    assert.equal((await runOf(service, await service.send(payload))).message, "a quiet lake");
    const unmet = await service.send(payload.replace('"number":7', '"number":NaN'));
    assert.deepEqual((await json(unmet)).unmet, "/issue/number");
  });

  it("holds the prefixes of session keys, and needs no permission for requests to choose them", async () => {
    const service = await oneSender(
      { ...GITHUB, session_key: "{{/action}}:x" },
      { config: { hooks_allowed_session_key_prefixes: ["opened:"] } },
    );
    assert.equal((await runOf(service, await service.send(ISSUE))).sessionKey, "opened:x");
    const denied = await service.send({ ...ISSUE, action: "evil" }, { headers: { "x-github-delivery": "2" } });
    assert.deepEqual([denied.status, (await json(denied)).code], [400, "session_key_prefix_denied"]);
  });

  it("acknowledges what does not meet the conditions, and starts nothing", async () => {
    const when = { "/action": ["opened", "edited"], "/issue/number": 7, "X-GitHub-Event": "issues" };
    const service = await oneSender({ ...GITHUB, when });
    for (const [unmet, payload, headers] of [
      ["/action", { ...ISSUE, action: "closed" }, {}],
      ["/action", {}, {}],
      ["/issue/number", { ...ISSUE, issue: { number: 8 } }, {}],
      ["X-GitHub-Event", ISSUE, { "x-github-event": "push" }],
    ] as const) {
      const response = await service.send(payload, { headers });
      assert.deepEqual([response.status, await json(response)], [202, { ok: true, status: "ignored", unmet }]);
    }
    assert.deepEqual((await service.hooks.runs.list({ limit: 1 })).runs, []);
    await runOf(service, await service.send(ISSUE));
  });

  it("answers the trial requests of Slack and GitHub, once they are signed", async () => {
    const slack = await oneSender({ signature: "slack", secrets: SECRET, message: "{{/event/text}}" });
    const trial = { type: "url_verification", challenge: "3eZbrw1aB" };
    const answered = await slack.send(trial);
    assert.deepEqual([answered.status, await json(answered)], [200, { challenge: "3eZbrw1aB" }]);
    assert.equal((await slack.send(trial, { secret: "ZmVkY2JhOTg3NjU0MzIxMA==" })).status, 401);
    const github = await oneSender(GITHUB);
    const ping = await github.send({ zen: "Keep it logically awesome." }, { headers: { "x-github-event": "ping" } });
    assert.deepEqual([ping.status, await json(ping)], [200, { ok: true, status: "ignored" }]);
  });

  it("counts failed signatures with failed tokens; a good one always passes", async () => {
    const service = await oneSender(GITHUB, { config: { limits: { failed_auth_per_minute: 2 } } });
    const bad = () => service.send(ISSUE, { secret: "ZmVkY2JhOTg3NjU0MzIxMA==" });
    assert.deepEqual([(await bad()).status, (await bad()).status], [401, 401]);
    const limited = await bad();
    assert.deepEqual([limited.status, (await json(limited)).code], [429, "auth_rate_limited"]);
    assert.equal((await service.post("/hooks/agent", { message: "x" }, { authorization: "Bearer no" })).status, 429);
    assert.equal((await service.send(ISSUE)).status, 200);
  });

  it("counts starts by sender, with the limits of its session", async () => {
    const service = await oneSender(GITHUB, { config: { limits: { starts_per_10s: 1 } } });
    const send = (id: string) => service.send(ISSUE, { headers: { "x-github-delivery": id } });
    assert.deepEqual([(await send("1")).status, (await send("2")).status, (await send("1")).status], [200, 429, 200]);
    assert.equal((await service.post("/hooks/agent", { message: "x" })).status, 200);
  });

  it("keeps the deliveries of two senders apart", async () => {
    const sender = { ...GITHUB, message: "m" };
    const service = await startService({ config: { incoming: { one: sender, two: sender } } });
    const body = "{}";
    const headers = { "content-type": "application/json", ...SIGN.github({ secret: SECRET, body, time: 0 }) };
    for (const name of ["one", "two"]) {
      const response = await fetch(`${service.url}/hooks/in/${name}`, { method: "POST", headers, body });
      assert.equal(response.headers.get("idempotent-replayed"), null);
    }
  });

  it("another payload of the same delivery: 422", async () => {
    const service = await oneSender(GITHUB);
    await runOf(service, await service.send(ISSUE));
    const other = await service.send({ issue: { title: "another" } });
    assert.deepEqual([other.status, (await json(other)).code], [422, "idempotency_mismatch"]);
  });

  it("shows the message to the agent's own check", async () => {
    const check = (message: string) => {
      throw new LatentkitError("usage.invalid", `No ${message}.`);
    };
    const service = await oneSender(GITHUB, { agent: Object.assign(async () => ({ response: "" }), { check }) });
    const refused = await service.send(ISSUE);
    assert.deepEqual([refused.status, (await json(refused)).error], [400, "No a quiet lake."]);
  });

  describe("forms", () => {
    const form = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
    const COMMAND: SenderInput = { signature: "slack", secrets: SECRET, message: "{{/text}}", name: "{{/user_name}}" };

    it("are read by their fields, and a command of Slack starts one run", async () => {
      const service = await oneSender({ ...COMMAND, when: { "/command": "/paint" } });
      const body = "command=%2Fpaint&text=a+quiet+l%C3%A4ke&user_name=ada&trigger_id=1.2&__proto__=x";
      const first = await service.send(body, { headers: form });
      const run = await runOf(service, first.clone());
      assert.deepEqual([run.message, run.name], ["a quiet läke", "ada"]);
      const again = await service.send(body, { headers: form });
      assert.deepEqual(await json(again), await json(first));
      const other = await service.send("command=%2Fother", { headers: form });
      assert.deepEqual((await json(other)).unmet, "/command");
    });

    it("with JSON in the one field payload are that payload", async () => {
      const service = await oneSender(GITHUB);
      const body = new URLSearchParams({ payload: JSON.stringify(ISSUE) }).toString();
      assert.equal((await runOf(service, await service.send(body, { headers: form }))).message, "a quiet lake");
    });

    it("of Slack's check of a certificate get 200 once they are signed, and start nothing", async () => {
      const service = await oneSender({
        signature: "slack",
        secrets: SECRET,
        placeholders: { message: "{{/text}}" },
        when: { "/command": "/paint" },
      });
      const check = await service.send("ssl_check=1&token=x", { headers: form });
      assert.deepEqual([check.status, await json(check)], [200, { ok: true, status: "ignored" }]);
      const unsigned = await service.send("ssl_check=1&token=x", { headers: form, secret: "ZmVkY2JhOTg3NjU0MzIxMA==" });
      assert.equal(unsigned.status, 401);
      assert.deepEqual((await service.hooks.runs.list({ limit: 1 })).runs, []);
      const body = "command=%2Fpaint&text=a+lake&ssl_check=0&trigger_id=1";
      assert.equal(
        (await runOf(service, await service.send(body, { headers: form }))).message,
        '{"message": "a lake"}',
      );
    });

    for (const [body, sentence] of [
      ["text=a&text=b", "the form has a field more than once"],
      ["payload=x", "the field payload, line 1, column 1"],
      ["", "the body is empty, expected a JSON object"],
    ] as const) {
      it(`${body}: 400`, async () => {
        const service = await oneSender(COMMAND);
        const response = await service.send(body, { headers: form });
        assert.equal(response.status, 400);
        assert.ok(String((await json(response)).error).startsWith(sentence));
      });
    }

    it("are refused elsewhere", async () => {
      const { post } = await startService();
      assert.equal((await post("/hooks/agent", "message=x", form)).status, 415);
    });
  });

  for (const [what, path, init, status] of [
    ["an unknown name", "/hooks/in/other", { method: "POST" }, 404],
    ["no name", "/hooks/in/", { method: "POST" }, 404],
    ["a name of every object", "/hooks/in/__proto__", { method: "POST" }, 404],
    ["another case", "/hooks/in/IT", { method: "POST" }, 404],
    ["GET", "/hooks/in/it", {}, 405],
    ["a token in the URL", "/hooks/in/it?token=x", { method: "POST" }, 400],
    ["a body that is no JSON", "/hooks/in/it", { method: "POST", body: "a=b" }, 415],
    ["a body that is too large", "/hooks/in/it", { method: "POST", body: JSON.stringify("x".repeat(300_000)) }, 413],
  ] as [string, string, RequestInit, number][]) {
    it(`${what}: ${status}`, async () => {
      const { url } = await oneSender(GITHUB);
      const type = status === 415 ? "text/plain" : "application/json";
      const headers = { "content-type": type, "x-hub-signature-256": "sha256=00" };
      assert.equal((await fetch(url + path, { ...init, headers })).status, status);
    });
  }

  it("without a hook token: 503, as every hook endpoint", async () => {
    const service = await oneSender(GITHUB, { config: { hooks_token: "" } });
    const response = await service.send(ISSUE);
    assert.deepEqual([response.status, (await json(response)).code], [503, "hooks_not_configured"]);
  });
});
