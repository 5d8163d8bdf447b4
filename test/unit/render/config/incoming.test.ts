import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { parseConfig } from "#src/render/config/config.js";
import { parseTemplate, standardKey } from "#src/render/config/incoming.js";
import { loadConfig } from "#src/render/config/load-config.js";
import { growsLinearly } from "../../../helpers/growth.js";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZg==";
const GOOD = { signature: "github", secrets: SECRET, message: "x" };
const parse = (incoming: unknown) => parseConfig({ channels: { web: { incoming } } }, "test");

describe("channels.web.incoming", () => {
  it("fills in its defaults, and is the same when read again", () => {
    const config = parse({ it: { ...GOOD, secrets: `  ${SECRET} ` } });
    assert.deepEqual(config.channels.web.incoming, {
      it: { ...GOOD, replay_seconds: 300, priority: 0, tags: [] },
    });
    assert.deepEqual(parseConfig(config, "test"), config);
  });

  it("can be an environment variable", () => {
    const env = {
      LATENTKIT_CHANNELS_WEB_INCOMING: `{ it: { signature: slack, secrets: [${SECRET}], message: "{{/a}}" } }`,
    };
    assert.equal(loadConfig({ env }).channels.web.incoming.it!.message, "{{/a}}");
  });

  for (const [what, incoming, pattern] of [
    ["a name with a slash", { "a/b": GOOD }, /expected a name of a-z, 0-9, - and _/],
    ["a name with capitals", { GitHub: GOOD }, /expected a name/],
    ["an unknown scheme", { it: { ...GOOD, signature: "gitlab" } }, /"channels.web.incoming.it.signature": .*github/],
    [
      "a misspelt key",
      { it: { ...GOOD, mesage: "x" } },
      /unknown key "channels.web.incoming.it.mesage". Did you mean "message"/,
    ],
    ["no secret", { it: { signature: "github", message: "x" } }, /secrets": expected a text of at least 16 characters/],
    [
      "a short secret",
      { it: { ...GOOD, secrets: "short" } },
      /secrets": expected a text of at least 16 characters, received a text of 5 characters/,
    ],
    ["no secrets in the list", { it: { ...GOOD, secrets: [] } }, /secrets": expected a list of at least 1 entry/],
    [
      "a secret that is not base64",
      { it: { ...GOOD, signature: "standard-webhooks", secrets: "it's a secret, no base64" } },
      /expected base64, as in whsec_/,
    ],
    [
      "neither message nor placeholders",
      { it: { signature: "github", secrets: SECRET } },
      /incoming.it": expected message or placeholders/,
    ],
    ["a broken template", { it: { ...GOOD, message: "{{/a" } }, /incoming.it.message": expected }} after "{{\/a"/],
    [
      "a broken template of a placeholder",
      { it: { ...GOOD, placeholders: { a: "{{" } } },
      /incoming.it.placeholders.a"/,
    ],
    ["a broken condition", { it: { ...GOOD, when: { "a b": "x" } } }, /incoming.it.when": expected a JSON pointer/],
    [
      "a seed that has lost digits",
      { it: { ...GOOD, placeholders: { seed: 2 ** 53 + 2 } } },
      /incoming.it.placeholders.seed": expected a whole number beyond 2\^53 in quotes/,
    ],
    [
      "a condition that has lost digits",
      { it: { ...GOOD, when: { "/id": [1, 2 ** 64] } } },
      /incoming.it.when.\/id.*": expected a whole number beyond 2\^53 in quotes/,
    ],
    ["101 senders", Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`s${i}`, GOOD])), /at most 100 senders/],
    [
      "65 placeholders",
      { it: { ...GOOD, placeholders: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [i, 1])) } },
      /at most 64 entries/,
    ],
  ] as [string, unknown, RegExp][]) {
    it(`refuses ${what}`, () => assert.throws(() => parse(incoming), pattern));
  }

  it("knows a key of Standard Webhooks, with and without its prefix and padding", () => {
    for (const secret of [SECRET, `whsec_${SECRET}`, SECRET.replace("==", "")]) {
      assert.equal(standardKey(secret)?.toString(), "0123456789abcdef");
    }
    for (const secret of ["", "whsec_", "a b c d", "MDEy-_=="]) assert.equal(standardKey(secret), undefined);
  });
});

describe("parseTemplate", () => {
  it("reads texts, pointers and headers in order", () => {
    assert.deepEqual(parseTemplate("a {{ /b~1c/0/~0 }}{{X-GitHub-Event}} } {{}}!{{/}}"), [
      "a ",
      { pointer: ["b/c", "0", "~"], written: "/b~1c/0/~0" },
      { header: "x-github-event", written: "X-GitHub-Event" },
      " } ",
      { pointer: [], written: "" },
      "!",
      { pointer: [""], written: "/" },
    ]);
    assert.deepEqual(parseTemplate("}} no reference {"), ["}} no reference {"]);
  });

  for (const [text, sentence] of [
    ["{{/a", 'expected }} after "{{/a"'],
    ["{{a b}}", 'expected a JSON pointer such as /action or a header\'s name, not "a b"'],
    ["{{$.a}}", 'expected a JSON pointer such as /action or a header\'s name, not "$.a"'],
    ["{{/a~2}}", "expected ~0 for ~ and ~1 for / in the keys of a JSON pointer"],
    ["{{/a}}".repeat(33), "expected at most 32 references"],
  ] as const) {
    it(`refuses ${text.slice(0, 20)}`, () => {
      const isRight = (error: unknown) => error instanceof LatentkitError && error.message === sentence;
      assert.throws(() => parseTemplate(text), isRight);
    });
  }

  it("takes linear time, whatever the text", async () => {
    for (const piece of ["{{", "{{ ", "}}", "{{/~0", "{"])
      await growsLinearly(
        12_500,
        (size) => piece.repeat(size),
        (text) => {
          try {
            parseTemplate(text);
          } catch (error) {
            assert.ok(error instanceof LatentkitError);
          }
        },
      );
  });
});
