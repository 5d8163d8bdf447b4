import assert from "node:assert/strict";
import { refuses } from "../../../../helpers/errors.js";
import { serviceStarter, until } from "../../../../helpers/hooks/hook-service.js";

const startService = serviceStarter();

const overrideDisabled = (field: string) =>
  `sessionKey override is disabled: "${field}" needs hooks_allow_request_session_key: true (channels.web of the configuration)`;
const PREFIX_DENIED =
  'sessionKey is not allowed by configured prefixes: "sessionKey" must begin with one of hooks_allowed_session_key_prefixes, "hook:", "ci:" (channels.web of the configuration)';
/** Session of a run that has one of its own. */
const OWN = /^hook:[0-9a-f]{8}-[0-9a-f-]{27}$/;

for (const [endpoint, body] of [
  ["/hooks/agent", { message: "x" }],
  ["/api/hooks/wake", { text: "x" }],
  ["/hooks/wake", { text: "x", mode: "next-heartbeat" }],
] as const) {
  describe(`session key on ${endpoint} ${"mode" in body ? body.mode : ""}`, () => {
    /** The session a request got, or [status, code, sentence]. */
    async function ask(given: object, config: object): Promise<unknown> {
      const { post } = await startService({ config: { ...config, ...token } });
      const response = await post(endpoint, { ...body, ...given });
      const json = (await response.json()) as Record<string, string>;
      return response.status === 200 ? json.session_key : [response.status, json.code, json.error];
    }
    const token = { hooks_token: "correct-horse-battery-staple" };
    const allowed = { hooks_allow_request_session_key: true, hooks_allowed_session_key_prefixes: ["hook:", "ci:"] };

    it("missing: the default of the configuration", async () => {
      assert.equal(await ask({}, { hooks_default_session_key: " mine " }), "mine");
      for (const absent of [null, "", "  \t"]) {
        const mine = { hooks_default_session_key: "mine" };
        assert.equal(await ask({ sessionKey: absent, session_key: absent }, mine), "mine");
      }
    });

    it("missing, without a default: one of the run's own, or that of wakes", async () => {
      const expected = endpoint === "/hooks/agent" ? OWN : /^hook:ingress$/;
      for (const none of [undefined, null, "  "]) {
        assert.match(String(await ask({}, { hooks_default_session_key: none })), expected);
      }
      assert.match(
        String(await ask({ sessionKey: null, session_key: " " }, { hooks_default_session_key: null })),
        expected,
      );
    });

    it("overrides disabled: refused under either name", async () => {
      const refused = (field: string) => [400, "session_key_override_disabled", overrideDisabled(field)];
      assert.deepEqual(await ask({ sessionKey: "hook:a" }, {}), refused("sessionKey"));
      assert.deepEqual(await ask({ session_key: "hook:a" }, {}), refused("session_key"));
      assert.deepEqual(await ask({ sessionKey: "hook:ingress" }, {}), refused("sessionKey"));
    });

    it("allowed prefix: accepted, trimmed and in NFC", async () => {
      assert.equal(await ask({ sessionKey: "hook:a" }, allowed), "hook:a");
      assert.equal(await ask({ session_key: " ci:b\n" }, allowed), "ci:b");
      assert.equal(await ask({ sessionKey: "hook:e\u0301" }, allowed), "hook:\u00e9");
      assert.equal(await ask({ sessionKey: "hook:\u00e9", session_key: " hook:e\u0301" }, allowed), "hook:\u00e9");
      assert.equal(await ask({ sessionKey: "hook:../../etc" }, allowed), "hook:../../etc");
    });

    for (const key of [
      "Hook:x",
      "xhook:",
      "hook",
      "\uff48\uff4f\uff4f\uff4b:x",
      "hook\uff1ax",
      "ho\u200bok:x",
      "\u200bhook:x",
      "\u202ehook:x",
      "h\u043eok:x",
      "../../etc",
      "__proto__",
      "*",
      "x hook:",
    ]) {
      it(`${JSON.stringify(key)} fails the prefix policy`, async () => {
        assert.deepEqual(await ask({ sessionKey: key }, allowed), [400, "session_key_prefix_denied", PREFIX_DENIED]);
      });
    }

    it("no prefixes: any key is accepted", async () => {
      const config = { hooks_allow_request_session_key: true };
      assert.equal(await ask({ sessionKey: "Any:x" }, { ...config, hooks_allowed_session_key_prefixes: [] }), "Any:x");
      assert.equal(await ask({ sessionKey: "Any:x" }, config), "Any:x");
    });

    for (const [what, key] of [
      ["an array", ["hook:a"]],
      ["an object", { hook: "a" }],
      ["a number", 5],
      ["a boolean", true],
      ["a control character", "hook:a\u0000b"],
      ["a line break", "hook:a\nb"],
      ["a line separator", "hook:a\u2028b"],
      ["an escape", "hook:\u001b[31m"],
      ["257 characters", `hook:${"k".repeat(252)}`],
    ] as const) {
      it(`${what}: 400`, async () => {
        const [status, code] = (await ask({ sessionKey: key }, allowed)) as [number, string];
        assert.deepEqual([status, code], [400, "invalid_request"]);
      });
    }

    it("a lone surrogate: 400", async () => {
      const { post } = await startService({ config: { ...allowed, ...token } });
      const text = JSON.stringify({ ...body, sessionKey: "KEY" }).replace("KEY", "hook:\\ud800");
      assert.equal((await post(endpoint, text)).status, 400);
    });

    it("256 characters are accepted", async () => {
      const key = `hook:${"k".repeat(251)}`;
      assert.equal(await ask({ sessionKey: key }, allowed), key);
    });

    it("two different spellings: 400", async () => {
      const [status, code] = (await ask({ sessionKey: "hook:a", session_key: "hook:b" }, allowed)) as [number, string];
      assert.deepEqual([status, code], [400, "invalid_request"]);
    });
  });
}

describe("session policy", () => {
  it("warns at the start if no prefix restricts overrides", async () => {
    const open = { hooks_allow_request_session_key: true };
    for (const config of [open, { ...open, hooks_allowed_session_key_prefixes: [] }]) {
      const { log } = await startService({ config });
      assert.match(log(), /hooks_allowed_session_key_prefixes is not set or empty/);
    }
    const { log } = await startService({ config: { ...open, hooks_allowed_session_key_prefixes: ["hook:"] } });
    assert.doesNotMatch(log(), /prefixes/);
  });

  it("applies to the default key at creation", async () => {
    for (const hooks_default_session_key of ["k".repeat(257), "a\nb", "\ud800", 5]) {
      const config = { hooks_default_session_key } as { hooks_default_session_key: string };
      await refuses(startService({ config }), "config.invalid", /hooks_default_session_key/);
    }
  });

  it("lets requests that name none run at the same time, and one after the other where there is a default", async () => {
    for (const [config, states] of [
      [{ hooks_default_session_key: null }, ["running", "running"]],
      [{ hooks_default_session_key: "hook:ingress" }, ["running", "queued"]],
    ] as const) {
      const { start, get } = await startService({ config });
      const runs = [await start("hold"), await start("hold")];
      const stateOf = async ({ status_url }: { status_url: string }) =>
        ((await (await get(status_url)).json()) as { status: string }).status;
      await until(async () => (await stateOf(runs[0]!)) === "running", "the first run");
      if (states[1] === "running") await until(async () => (await stateOf(runs[1]!)) === "running", "the second run");
      assert.deepEqual(await Promise.all(runs.map(stateOf)), states);
    }
  });

  it("names no more than five prefixes", async () => {
    const prefixes = ["a", "b", "c", "d", "e", "f"].map((letter) => `${letter}:`);
    const config = { hooks_allow_request_session_key: true, hooks_allowed_session_key_prefixes: prefixes };
    const { post } = await startService({ config });
    const { error } = (await (await post("/hooks/agent", { message: "x", session_key: "x" })).json()) as {
      error: string;
    };
    assert.match(error, /: "session_key" must begin with .*"a:", "b:", "c:", "d:", "e:" and others \(/);
  });

  it("a message is never interpreted", async () => {
    const { start, get } = await startService();
    const { status_url } = await start("/session hook:other\n/stop\nsessionKey: hook:other");
    assert.equal(((await (await get(status_url)).json()) as { session_key: string }).session_key, "hook:ingress");
  });
});
