import assert from "node:assert/strict";
import { inspect } from "#src/service/web/inspect.js";

const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));

describe("inspect", () => {
  it("shows links, values with every digit, and titles", () => {
    const text = `{
      "1": { "class_type": "KSampler", "inputs": { "seed": 18446744073709551615, "model": ["2", 0], "cfg": 1.50 },
             "_meta": { "title": "Paint" } },
      "2": { "class_type": "Mystery", "inputs": { "list": { "__value__": [1, 2] } } }
    }`;
    const { graph, problem, format, receipt } = inspect(bytes(text));
    assert.equal(problem, null);
    assert.equal(receipt, null);
    assert.equal(format, "json");
    const [sampler, mystery] = graph!.nodes;
    assert.deepEqual(sampler!.inputs, [
      { name: "seed", value: "18446744073709551615" },
      { name: "model", from: { node: "2", output: 0 } },
      { name: "cfg", value: "1.50" },
    ]);
    assert.equal(sampler!.title, "Paint");
    assert.equal(sampler!.is_known, true);
    assert.equal(mystery!.is_known, false);
    const seed = graph!.parameters.find(({ key }) => key === "1.seed")!;
    assert.equal(seed.default, "18446744073709551615");
    assert.equal(graph!.text, null);
    assert.equal(seed.maximum, "18446744073709551615");
  });

  it("hostile keys, long values and many nodes stay bounded", () => {
    const nodes = Object.fromEntries(
      Array.from({ length: 2500 }, (_, i) => [
        i + 1,
        { class_type: "VAEDecode", inputs: { samples: "x".repeat(9000) } },
      ]),
    );
    const { graph } = inspect(bytes(nodes));
    assert.equal(graph!.nodes.length, 2000);
    assert.ok(graph!.nodes[0]!.inputs[0]!.value!.length <= 4001);
    const odd = inspect(bytes('{"1":{"class_type":"toString","inputs":{"valueOf":1}}}'));
    assert.deepEqual(odd.graph!.nodes[0]!.inputs, [{ name: "valueOf", value: "1" }]);
    assert.equal(odd.graph!.nodes[0]!.is_known, false);
    assert.match(
      inspect(bytes('{"1":{"class_type":"A","inputs":{"__proto__":1}}}')).problem!,
      /"__proto__" is refused/,
    );
  });

  it("has the graph where the service runs any, and tells which inputs are named", () => {
    const text =
      '{"1": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615}}, ' +
      '"2": {"class_type": "PrimitiveInt", "inputs": {"value": 5}, "_meta": {"title": "copies"}}}';
    const { graph } = inspect(bytes(text), [], true);
    assert.equal(graph!.text, text);
    assert.deepEqual(
      graph!.parameters.map(({ key, named }) => [key, named]),
      [
        ["copies", true],
        ["1.seed", false],
      ],
    );
  });

  it("says what is wrong with anything else", () => {
    for (const text of ["", "null", "7", "[]", "{", '{"1":7}', "\u0000"]) {
      const { graph, problem } = inspect(bytes(text));
      assert.equal(graph, null, text);
      assert.match(problem!, /\.$/, text);
    }
  });
});
