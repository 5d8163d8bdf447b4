import assert from "node:assert/strict";
import { parseConfig } from "#src/render/config/config.js";
import { hideSecrets } from "#src/render/config/secrets.js";
import { WEBHOOK_STATES } from "#src/render/config/webhooks.js";
import { RUN_STATES } from "#src/service/hooks/run.js";

const SECRET = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const GOOD = { url: "https://shop.example.com/hook", secrets: SECRET };
const parse = (webhooks: unknown) => parseConfig({ channels: { web: { webhooks } } }, "test");

describe("channels.web.webhooks", () => {
  it("fills in its defaults, and is the same when read again", () => {
    const config = parse({ shop: GOOD });
    const events = WEBHOOK_STATES.map((state) => `run.${state}`);
    assert.deepEqual(config.channels.web.webhooks, {
      shop: { ...GOOD, events, session_prefix: "", on_request: false, allow_networks: [] },
    });
    assert.deepEqual(parseConfig(config, "test"), config);
  });

  it("knows every end of a run", () => {
    assert.deepEqual(
      WEBHOOK_STATES.map(String),
      RUN_STATES.filter((state) => state !== "queued" && state !== "running"),
    );
  });

  it("prints no secret", () => {
    const { webhooks } = (hideSecrets(parse({ shop: GOOD })) as ReturnType<typeof parse>).channels.web;
    assert.equal(webhooks.shop!.secrets, `set (${SECRET.length} chars)`);
  });

  for (const [what, webhook, pattern] of [
    ["plain HTTP", { ...GOOD, url: "http://shop.example.com/" }, /shop.url": expected https: without allow_networks/],
    ["a private address", { ...GOOD, url: "https://10.0.0.5/" }, /expected a public address or one in allow_networks/],
    ["an address that hides one", { ...GOOD, url: "https://2130706433/" }, /expected a public address/],
    ["the loopback of IPv6", { ...GOOD, url: "https://[::1]/" }, /expected a public address/],
    ["a password", { ...GOOD, url: "https://me:word@shop.example.com/" }, /expected an address without a password/],
    ["another protocol", { ...GOOD, url: "file:///etc/passwd" }, /"channels.web.webhooks.shop.url"/],
    ["no secret", { url: GOOD.url }, /secrets": expected whsec_ or whsk_ and a key in base64/],
    [
      "a short secret",
      { ...GOOD, secrets: "whsec_c2hvcnQ=" },
      /secrets": expected whsec_ .*received a text of 14 characters/,
    ],
    ["a secret of unknown kind", { ...GOOD, secrets: [SECRET, "swordfish"] }, /secrets.*received/],
    ["a key of wrong length", { ...GOOD, secrets: "whsk_c2hvcnQ=" }, /secrets"/],
    ["an unknown event", { ...GOOD, events: ["run.done"] }, /events.0": .*run.succeeded/],
    ["no network", { ...GOOD, allow_networks: ["10.0.0.0/33"] }, /expected an IP address or a network such as 10/],
    [
      "sessions beside on_request",
      { ...GOOD, on_request: true, session_prefix: "a" },
      /expected no value with on_request/,
    ],
    ["a misspelt key", { ...GOOD, event: [] }, /unknown key "channels.web.webhooks.shop.event". Did you mean "events"/],
  ] as const) {
    it(`refuses ${what}`, () => {
      assert.throws(
        () => parse({ shop: webhook }),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, "config.invalid");
          assert.match(error.message, pattern);
          assert.doesNotMatch(error.message, /swordfish|c2hvcnQ/);
          return true;
        },
      );
    });
  }

  it("refuses a name with a slash", () => {
    assert.throws(() => parse({ "a/b": GOOD }), /expected a name of a-z, 0-9, - and _/);
  });
});
