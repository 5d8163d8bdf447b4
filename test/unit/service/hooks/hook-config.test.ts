import assert from "node:assert/strict";
import { type HookConfigInput, readHookConfig } from "#src/service/hooks/hook-config.js";

describe("readHookConfig", () => {
  it("names keys as a program writes them, and tells a misplaced one its place", () => {
    const cases: [object, string][] = [
      [{ stream_auth: "x" }, '"stream_auth": expected "token", "signed" or "none", received "x".'],
      [{ limits: { running: 0 } }, '"limits.running": expected a number of more than 0, received 0.'],
      [{ stream_atuh: "x" }, 'unknown key "stream_atuh". Did you mean "stream_auth"?'],
      [
        { channels: { web: { hooks_token: "x" } } },
        'unknown key "channels": expected the keys of "channels.web" themselves.',
      ],
      [{ web: { hooks_token: "x" } }, 'unknown key "web": expected the keys of "channels.web" themselves.'],
      [{ limits: { stream_auth: "token" } }, 'unknown key "limits.stream_auth": it belongs at the top level.'],
      [{ running: 2 }, 'unknown key "running": it belongs under "limits".'],
      [{ port: 80 }, 'unknown key "port": it belongs to the configuration of `latentkit serve`, or of startService.'],
    ];
    for (const [config, sentence] of cases) {
      assert.throws(() => readHookConfig(config as HookConfigInput), {
        code: "config.invalid",
        message: `createHookService: ${sentence}`,
      });
    }
  });

  it("has a session for wakes, and one for all other runs where the configuration names one", () => {
    const { sessions } = readHookConfig({});
    assert.deepEqual([sessions.defaultKey, sessions.wakeKey], [undefined, "hook:ingress"]);
    for (const blank of [null, " "]) {
      assert.equal(readHookConfig({ hooks_default_session_key: blank }).sessions.defaultKey, undefined);
    }
    const named = readHookConfig({ hooks_default_session_key: " a " }).sessions;
    assert.deepEqual([named.defaultKey, named.wakeKey], ["a", "a"]);
  });
});
