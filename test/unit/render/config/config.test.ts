import assert from "node:assert/strict";
import { LatentkitError } from "#src/base/errors.js";
import { configLeaves, parseConfig } from "#src/render/config/config.js";
import { hideSecrets } from "#src/render/config/secrets.js";

const refused = (value: unknown, pattern: RegExp) =>
  assert.throws(
    () => parseConfig(value, "test.yaml"),
    (error: unknown) => {
      assert.ok(error instanceof LatentkitError);
      assert.equal(error.code, "config.invalid");
      assert.equal(error.meaning.exit, 3);
      assert.match(error.message, pattern);
      return true;
    },
  );

const sender = (signature: string) => ({ signature, secrets: "3141592 is no base64!", message: "x" });

describe("parseConfig", () => {
  it("fills in every documented default", () => {
    const config = parseConfig({}, "test");
    assert.deepEqual([config.host, config.port, config.store], ["127.0.0.1", 8188, "sqlite:./latentkit.db"]);
    assert.deepEqual([config.output_dir, config.device, config.files], ["./out", "auto", undefined]);
    assert.deepEqual([config.models, config.models_device], [[], undefined]);
    assert.deepEqual(config.remote_image_api, { base_url: "https://api.stability.ai", keys: [] });
    assert.deepEqual(config.channels.web, {
      comfy_api: "none",
      comfy_classic: "none",
      comfy_inputs: false,
      hooks_allow_request_session_key: false,
      hooks_heartbeat_seconds: 0,
      stream_auth: "token",
      on_restart: "interrupt",
      on_loss: "requeue",
      retries: { attempts: 3, first_delay_seconds: 5, longest_delay_seconds: 300, codes: [] },
      trust_proxy: false,
      allowed_origins: [],
      incoming: {},
      webhooks: {},
      metrics: "open",
      openapi: "open",
    });
    assert.equal(Object.keys(config.limits).length, 38);
    assert.deepEqual([config.limits.body_bytes, config.limits.drain_seconds], [262144, 30]);
    assert.deepEqual(parseConfig(undefined, "empty"), config);
  });

  it("hands out fresh objects, so that one configuration cannot change another", () => {
    const first = parseConfig({}, "first");
    first.remote_image_api.keys.push({ name: "changed", key: "k" });
    first.limits.running = 99;
    assert.deepEqual(parseConfig({}, "second").remote_image_api.keys, []);
    assert.equal(parseConfig({}, "second").limits.running, 4);
  });

  it("refuses unknown keys at every depth and says what was meant", () => {
    refused({ output_dirs: "x" }, /^test\.yaml: unknown key "output_dirs"\. Did you mean "output_dir"\?$/);
    refused({ limits: { runing: 3 } }, /unknown key "limits\.runing"\. Did you mean "running"\?/);
    refused(
      { channels: { web: { stream_atuh: 1 } } },
      /unknown key "channels\.web\.stream_atuh"\. Did you mean "stream_auth"\?/,
    );
    refused(
      { remote_image_api: { keys: [{ name: "a", kee: "b" }] } },
      /unknown key "remote_image_api\.keys\.0\.kee".*"key"/,
    );
    refused(JSON.parse('{"__proto__": {"host": "x"}}'), /unknown key "__proto__"/);
  });

  it("names key, expectation and value of what does not fit", () => {
    refused({ port: 99999 }, /"port": expected a number of at most 65535, received 99999\./);
    refused({ port: "80" }, /"port": expected a number, received "80"\./);
    refused({ limits: { running: 0 } }, /"limits\.running": expected a number of more than 0, received 0\./);
    refused(
      { limits: { retention_hours: 99_999_999 } },
      /"limits\.retention_hours": expected .* at most 876000, received/,
    );
    refused({ limits: { delay_seconds: 1e12 } }, /"limits\.delay_seconds": expected .* at most 3153600000, received/);
    refused({ limits: { running: Number.NaN } }, /"limits\.running": expected a number, received NaN\./);
    refused({ port: 1.5 }, /"port": expected a whole number, received 1\.5\./);
    refused(
      { channels: { web: { stream_auth: "opne" } } },
      /"channels\.web\.stream_auth": expected "token", "signed" or "none", received "opne"\./,
    );
    refused(
      { remote_image_api: { keys: [{ name: "", key: "k" }] } },
      /expected a text of at least 1 character, received /,
    );
    refused({ store: "mysql:x" }, /"store": expected memory:, sqlite:FILE or postgres:/);
    refused({ files: "s3:bucket" }, /"files": expected s3:\/\/BUCKET\/PREFIX, received "s3:bucket"\./);
    refused({ files: "https://a:3141592@b" }, /"files": .* received "https:\/\/a:set \(7 chars\)@b"/);
    refused(
      { agent: { graph: "a", module: "b" } },
      /"agent": expected \{ graph: FILE \}, \{ graphs: \{ NAME: FILE \} \} or \{ module: FILE \}/,
    );
    refused({ agent: { graph: "a", targets: [4] } }, /"agent\.targets\.0": expected a text, received 4\.$/);
    refused({ agent: { grap: "a" } }, /unknown key "agent\.grap"\. Did you mean "graph"\?$/);
    refused(
      { remote_image_api: { base_url: "file:///etc/passwd" } },
      /"remote_image_api\.base_url": expected an address that begins with http: or https:, received "file:\/\/\/etc\/passwd"\.$/,
    );
    refused([], /^test\.yaml: expected an object, received a list of 0\.$/);
    refused(
      { channels: { web: { incoming: { a: { signature: "github", message: "x" } } } } },
      /"channels\.web\.incoming\.a\.secrets": expected a text of at least 16 characters, .*, received nothing\.$/,
    );
  });

  it("says in its own words what is expected, whatever the value", () => {
    const values = [null, true, -1, 1.5, 1e9, "", "\0", "no", [], [{}], [7], {}, { a: 1 }, { a: {} }, Number.NaN];
    let count = 0;
    for (const [path] of configLeaves()) {
      for (const value of values) {
        const config = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
        try {
          parseConfig(config, "test.yaml");
        } catch (error) {
          assert.ok(error instanceof LatentkitError);
          // the fields of a format are judged together
          const key = path[0] === "format" ? "format(\\.\\w+)?" : path.join("\\.");
          assert.match(error.message, new RegExp(`^test\\.yaml: (unknown key )?"${key}(\\.[\\w.]+)?"[.:]`));
          assert.doesNotMatch(error.message, /Invalid|Too (small|big)|Unrecognized|undefined|another (value|text)/);
          count++;
        }
      }
    }
    assert.ok(count > 500);
  });

  it("tells a misplaced key its place", () => {
    const cases: [unknown, string][] = [
      [{ hooks_token: "3141592" }, 'unknown key "hooks_token": it belongs under "channels.web".'],
      [{ web: {} }, 'unknown key "web": it belongs under "channels".'],
      [{ channels: { hooks_token: "x" } }, 'unknown key "channels.hooks_token": it belongs under "channels.web".'],
      [{ channels: { web: { port: 80 } } }, 'unknown key "channels.web.port": it belongs at the top level.'],
      [{ channels: { web: { limits: {} } } }, 'unknown key "channels.web.limits": it belongs at the top level.'],
      [{ channels: { web: { running: 2 } } }, 'unknown key "channels.web.running": it belongs under "limits".'],
      [{ graph: "a.json" }, 'unknown key "graph": it belongs under "agent".'],
      [{ signature: "github" }, 'unknown key "signature": it belongs under "channels.web.incoming.NAME".'],
      [{ "limits.running": 2 }, 'unknown key "limits.running": expected nested keys, limits: { running: … }.'],
      [{ token: "x" }, 'unknown key "token". Did you mean "channels.web.hooks_token"?'],
      [{ channels: { web: { token: "x" } } }, 'unknown key "channels.web.token". Did you mean "hooks_token"?'],
      [{ hook_token: "x" }, 'unknown key "hook_token". Did you mean "channels.web.hooks_token"?'],
    ];
    for (const [config, sentence] of cases) {
      assert.throws(() => parseConfig(config, "test.yaml"), { message: `test.yaml: ${sentence}` });
    }
  });

  it("takes the same values for both APIs of ComfyUI", () => {
    for (const key of ["comfy_api", "comfy_classic"] as const) {
      const parse = (value: unknown) =>
        parseConfig({ channels: { web: { [key]: value } } }, "test.yaml").channels.web[key];
      assert.deepEqual(["open", "token", "none", true, false].map(parse), ["open", "token", "none", "token", "none"]);
      assert.throws(() => parse("yes"), {
        message: `test.yaml: "channels.web.${key}": expected "open", "token" (or true) or "none" (or false), received "yes".`,
      });
    }
  });

  it("takes origins as browsers send them, and nothing that is more or less", () => {
    const parse = (allowed_origins: unknown) => parseConfig({ channels: { web: { allowed_origins } } }, "test");
    const given = ["https://Gallery.Example.com", "http://localhost:5173", "https://a.example:443", "http://[::1]:80"];
    given.push("https://bücher.example", "chrome-extension://abcdef");
    const { allowed_origins } = parse(given).channels.web;
    assert.deepEqual(allowed_origins, [
      "https://gallery.example.com",
      "http://localhost:5173",
      "https://a.example",
      "http://[::1]",
      "https://xn--bcher-kva.example",
      "chrome-extension://abcdef",
    ]);
    // a configuration is read once more on its way to the service
    assert.deepEqual(parse(allowed_origins).channels.web.allowed_origins, allowed_origins);
    const wrong = [
      "*",
      "https://*.example.com",
      "https://a.example/",
      "https://a.example/path",
      "a.example",
      "null",
      "",
    ];
    wrong.push(
      "https://",
      "https://u@a.example",
      "https://a.example?x",
      "https://a.example:99999",
      "https://a b",
      "//a.example",
    );
    for (const origin of wrong) {
      refused(
        { channels: { web: { allowed_origins: ["https://a.example", origin] } } },
        /"channels\.web\.allowed_origins\.1": expected an origin, scheme:\/\/host or scheme:\/\/host:port/,
      );
    }
    refused({ channels: { web: { allowed_origins: "https://a.example" } } }, /"channels\.web\.allowed_origins"/);
  });

  const slips: [string, unknown][] = [
    ["a key that is not a text", { remote_image_api: { keys: [{ name: "a", key: 3141592 }] } }],
    ["a key that is a list", { remote_image_api: { keys: [{ name: "a", key: ["3141592"] }] } }],
    ["a key for the list of keys", { remote_image_api: { keys: "3141592" } }],
    ["a number for the list of keys", { remote_image_api: { keys: 3141592 } }],
    ["keys without names", { remote_image_api: { keys: ["3141592"] } }],
    ["a list in the list", { remote_image_api: { keys: [["3141592"]] } }],
    ["a key for its name", { remote_image_api: { keys: [{ name: 3141592, key: "x" }] } }],
    ["a key for the remote settings", { remote_image_api: "3141592" }],
    ["a key as a word in braces", { remote_image_api: { keys: [{ "3141592": null }] } }],
    ["a key without a blank before it", { remote_image_api: { keys: [{ "key:3141592": null, name: "a" }] } }],
    ["a token for the channel", { channels: { web: "3141592" } }],
    ["a token for all channels", { channels: "3141592" }],
    ["a token for everything", "3141592"],
    ["a list of tokens for the channel", { channels: { web: ["3141592"] } }],
    ["a token as a word in braces", { channels: { web: { "3141592": null } } }],
    ["a token without a blank before it", { channels: { web: { "hooks_token:3141592": null } } }],
    ["a secret for a list of secrets", { channels: { web: { incoming: { a: { secrets: "3141592" } } } } }],
    [
      "a secret that is not a text",
      { channels: { web: { incoming: { a: { signature: "github", secrets: 3141592 } } } } },
    ],
    ["secrets for the senders", { channels: { web: { incoming: "3141592" } } }],
    ["a secret for a sender", { channels: { web: { incoming: { a: "3141592" } } } }],
    ["a secret as a word in braces", { channels: { web: { incoming: { a: { "secrets:3141592": null } } } } }],
    ["a secret that is not base64", { channels: { web: { incoming: { a: sender("standard-webhooks") } } } }],
    ["a password in a store that is none", { store: "mysql://user:3141592@host/db" }],
    ["a password in an address that is none", { remote_image_api: { base_url: "ftp://user:3141592@host" } }],
  ];
  for (const [what, config] of slips) {
    it(`shows no secret in a complaint: ${what}`, () => refused(config, /^((?!3141592).)*$/s));
  }

  for (const [what, key] of [
    ["257 characters", "k".repeat(257)],
    ["a line break", "hook:a\nb"],
    ["NUL", "hook:\0"],
    ["a lone surrogate", "hook:\ud800"],
    ["a line separator", "hook:\u2028b"],
  ] as const) {
    it(`refuses session keys of the configuration with ${what}`, () => {
      refused({ channels: { web: { hooks_default_session_key: key } } }, /"channels\.web\.hooks_default_session_key"/);
      refused({ channels: { web: { hooks_allowed_session_key_prefixes: [key] } } }, /"channels\.web\.\w+_prefixes\.0"/);
    });
  }

  it("takes session keys of 256 characters, counted as they are compared", () => {
    const longest = ` ${"e\u0301".repeat(256)}\n`;
    const { web } = parseConfig({ channels: { web: { hooks_default_session_key: longest } } }, "test").channels;
    assert.equal(web.hooks_default_session_key, longest);
  });
});

describe("hideSecrets", () => {
  it("replaces keys, tokens and passwords by their length and leaves the rest", () => {
    const key = "k".repeat(32);
    const config = parseConfig(
      {
        store: "postgres://user:secret@localhost/1?sslmode=require&password=secrets",
        remote_image_api: { keys: [{ name: "default", key }] },
        channels: {
          web: {
            hooks_token: ["abc", "defg"],
            incoming: {
              it: { signature: "github", secrets: key, message: "{{/a}}" },
              other: { signature: "slack", secrets: [key.slice(8)], message: "x" },
            },
          },
        },
      },
      "test",
    );
    const tree = {
      remote_image_api: { keys: { deep: ["3141592"] } },
      channels: { web: { hooks_token: { a: 3141592 } } },
    };
    assert.doesNotMatch(JSON.stringify(hideSecrets(tree)), /3141592/);
    const shown = hideSecrets(config) as typeof config;
    assert.deepEqual(shown.remote_image_api.keys, [{ name: "default", key: "set (32 chars)" }]);
    assert.deepEqual(shown.channels.web.hooks_token, ["set (3 chars)", "set (4 chars)"]);
    assert.equal(shown.store, "postgres://user:set (6 chars)@localhost/1?sslmode=require&password=set (7 chars)");
    assert.equal(shown.channels.web.incoming.it!.secrets, "set (32 chars)");
    assert.deepEqual(shown.channels.web.incoming.other!.secrets, ["set (24 chars)"]);
    assert.equal(shown.channels.web.incoming.it!.message, "{{/a}}");
    assert.equal(shown.channels.web.stream_auth, "token");
    assert.equal(config.remote_image_api.keys[0]!.key, key);
  });

  it("hides a token that is not a text, which counts as not configured", () => {
    const config = parseConfig({ channels: { web: { hooks_token: 654321 } } }, "test");
    assert.doesNotMatch(JSON.stringify(hideSecrets(config)), /654321/);
  });

  it("takes codes of errors as transient, and refuses others", () => {
    const parse = (codes: string[]) => parseConfig({ channels: { web: { retries: { codes } } } }, "test");
    const codes = ["agent_failed", "remote.failed"];
    assert.deepEqual(parse(codes).channels.web.retries.codes, codes);
    for (const code of ["remote", "constructor"]) {
      const expected = `test: "channels.web.retries.codes.0": expected agent_failed or a code of docs/errors.md, received "${code}".`;
      assert.throws(() => parse([code]), { message: expected });
    }
  });

  it("takes a format of pictures, and says what one can be", () => {
    const { format, parameters } = parseConfig({ format: { type: "png", bit_depth: 16 }, parameters: true }, "a.yaml");
    assert.deepEqual([format, parameters], [{ type: "png", bitDepth: 16 }, true]);
    assert.deepEqual([parseConfig({}, "a.yaml").format, parseConfig({}, "a.yaml").parameters], [undefined, false]);
    for (const wrong of [
      { type: "gif" },
      { type: "jpeg", lossless: true },
      { type: "webp", quality: 0 },
      { bit_depth: 9 },
    ]) {
      assert.throws(
        () => parseConfig({ format: wrong }, "a.yaml"),
        /^LatentkitError: a\.yaml: "format/,
        JSON.stringify(wrong),
      );
    }
    assert.throws(() => parseConfig({ format: { kind: "webp" } }, "a.yaml"), /unknown key "format\.kind"/);
  });
});
