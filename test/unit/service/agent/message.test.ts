import assert from "node:assert/strict";
import { printJson } from "#src/io/json/lossless.js";
import type { Parameter } from "#src/render/schema/graph-schema.js";
import { fillsOf } from "#src/service/agent/message.js";
import { refuses } from "../../../helpers/errors.js";

const placeholder = (key: string): Parameter => ({ key, isRequired: true, property: { title: key, type: "string" } });
const fills = (message: string, ...keys: string[]) => fillsOf(message, keys.map(placeholder));

describe("fillsOf", () => {
  const typed: Parameter[] = [
    { key: "steps", isRequired: false, property: { title: "steps", type: "integer", minimum: 1, maximum: 100 } },
    {
      key: "Sampler",
      isRequired: false,
      property: { title: "Sampler", type: "string", enum: ["euler", "ddim"] },
      renamed: new Map([["sample_euler", "euler"]]),
    },
  ];

  it("fills {{message}} with any text", () => {
    for (const text of [
      "a fox",
      "",
      "{not json",
      "{red|blue} fox",
      '{"message": "a"',
      '{"message": "a", "message": "b"',
      "{'message': 'a'}",
      "[cat:dog:0.5]",
      "[1, 2",
      '"x"',
      "7",
      '{"a": 1} and more',
      'a {"__proto__": {}}',
      "{{message}}",
    ]) {
      assert.deepEqual(fills(text, "message"), { message: text });
    }
  });

  it("an empty object sets nothing, and renders a graph without placeholders", () => {
    for (const message of ["{}", " { } ", "System event: x\n{}"]) {
      assert.deepEqual(fills(message), {});
      assert.deepEqual(fillsOf(message, typed), {});
    }
  });

  it("refuses a message that the graph has no use for, and names the keys it takes", async () => {
    const refused = async (message: string, parameters: readonly Parameter[], sentence: string) =>
      assert.equal((await refuses(() => fillsOf(message, parameters), "usage.invalid")).message, sentence);
    const none = 'Message: the graph takes no message; send "{}" to render it as it is.';
    for (const message of ["a fox", "", '{"message": "a fox"}', "System event: x"]) await refused(message, [], none);
    const text =
      'Message: the graph has no {{message}} for a plain text; it takes a JSON object with "steps", "Sampler".';
    for (const message of ["a fox", '"steps"', "{steps: 1}"]) await refused(message, typed, text);
    const key = (name: string) => `Message: the graph has no key "${name}"; it takes "steps", "Sampler".`;
    await refused('{"step": 20}', typed, `${key("step")} Did you mean "steps"?`);
    await refused('{"steps": 20, "6.text": "y"}', typed, key("6.text"));
    await refused('{"toString": "t"}', typed, key("toString"));
    const prompt = [placeholder("message"), placeholder("seed")];
    await refused(
      '{"message": "x"}',
      prompt,
      'Message: the graph needs a value for {{seed}}, received a JSON object with "message"; it takes "message", "seed".',
    );
    const many = Array.from({ length: 100 }, (_, i) => ({ ...typed[0]!, key: `k${i}` }));
    const { message } = await refuses(() => fillsOf("a fox", many), "usage.invalid", /"k19" and more\.$/);
    assert.ok(message.length < 300);
  });

  it("refuses JSON that is not such an object, and names the cause", async () => {
    const position = (column: number, reason: string) => `Message, line 1, column ${column}: ${reason}.`;
    const deep = `{"x": ${"[".repeat(3000)}${"]".repeat(3000)}}`;
    const refused: [message: string, sentence: string][] = [
      ['{"message": "a", "message": "b"}', position(18, 'duplicate key "message"')],
      ['{"message": "a", "constructor": 1}', position(18, 'the key "constructor" is not allowed')],
      ['{"message": "NaN", "__proto__": {"x": 1}}', position(20, 'the key "__proto__" is not allowed')],
      ['{"message": NaN}', position(13, "expected a value, received NaN")],
      ['{"message": -Infinity, "message": 1}', position(13, "expected a value, received -Infinity")],
      [deep, position(262, "nesting is deeper than 256 levels")],
      ['System event: x\n\n{"message": NaN}\n', "Message, line 3, column 13: expected a value, received NaN."],
      ['["a"]', "Message: expected a text or a JSON object, received a JSON array."],
      ["[]", "Message: expected a text or a JSON object, received a JSON array."],
    ];
    for (const [message, sentence] of refused)
      assert.equal((await refuses(() => fills(message, "message"), "usage.invalid")).message, sentence);
  });

  it("takes linear time for a hostile text that begins like JSON", () => {
    for (const part of ['\\"', '"', "[", '{"":', "NaN", "-"]) {
      const text = `{${part.repeat(200_000)}`;
      assert.deepEqual(fills(text, "message"), { message: text });
    }
  });

  it("fills {{key}} from a JSON object, with every digit", () => {
    const message = ' {"message": "a fox", "seed": 18446744073709551615, "scale": 7.0, "small": 1e-07, "on": false} ';
    const filled = fills(message, "message", "seed", "scale", "small", "on");
    assert.equal(
      printJson(filled),
      '{"message": "a fox", "seed": 18446744073709551615, "scale": 7.0, "small": 1e-07, "on": false}',
    );
  });

  it("reads a JSON object after the pending events", () => {
    const events = "System event: disk nearly full\nSystem event: {}\n";
    assert.deepEqual(fills(`${events}{"word": "fox"}`, "word"), { word: "fox" });
    assert.deepEqual(fills(`${events}a fox`, "message"), { message: `${events}a fox` });
  });

  it("names a placeholder without a value", async () => {
    await refuses(() => fills("a fox", "message", "style"), "usage.invalid", /\{\{style\}\}, received plain text/);
    await refuses(
      () => fills('{"stile": "x"}', "style"),
      "usage.invalid",
      /keys? "stile"|with "stile"/,
      /Did you mean "style"/,
    );
    await refuses(() => fills("{}", "message"), "usage.invalid", /\{\{message\}\}.*no keys/);
    await refuses(() => fills('{"a": 1}', "toString"), "usage.invalid", /\{\{toString\}\}/);
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i])));
    const { message } = await refuses(() => fills(many, "x"), "usage.invalid", /and more/);
    assert.ok(message.length < 300);
  });

  it("refuses values that would become a link or a node", async () => {
    for (const [value, words] of [
      ['["4", 0]', /a list of 2/],
      ['{"class_type": "x"}', /an object/],
      ["null", /null/],
    ] as const) {
      await refuses(() => fills(`{"message": ${value}}`, "message"), "usage.invalid", /text, number or boolean/, words);
    }
  });

  it("takes optional properties where they are there, by names of before too", () => {
    assert.deepEqual(fillsOf('{"steps": "20"}', typed), { steps: "20" });
    assert.deepEqual(fillsOf('{"Sampler": "sample_euler"}', typed), { Sampler: "sample_euler" });
  });

  it("refuses a value outside the schema in one sentence", async () => {
    const refused = async (message: string, sentence: string) =>
      assert.equal((await refuses(() => fillsOf(message, typed), "usage.invalid")).message, sentence);
    const whole = 'Message, property "steps": expected a whole number from 1 to 100';
    await refused('{"steps": 101}', `${whole}, received 101.`);
    await refused('{"steps": "many"}', `${whole}, received "many".`);
    await refused('{"steps": ["4", 0]}', `${whole}, received a list of 2.`);
    await refused(
      '{"Sampler": "eulre"}',
      'Message, property "Sampler": expected "euler" or "ddim", received "eulre". Did you mean euler?',
    );
    await refused(
      '{"Sampler": "eule"}',
      'Message, property "Sampler": expected "euler" or "ddim", received "eule". Did you mean euler?',
    );
  });
});
