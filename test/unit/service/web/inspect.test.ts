import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseGraph } from "#src/graph/parse.js";
import { defaultRegistry } from "#src/render/surroundings.js";
import { filledJob, formOfRun, inspect, servedValues } from "#src/service/web/inspect.js";
import { refuses } from "../../../helpers/errors.js";
import { root } from "../../../helpers/folders.js";

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
      /"__proto__" is not allowed/,
    );
  });

  it("has the graph if the service runs any, and tells which inputs are named", () => {
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

const sampler = (seed: unknown, text: unknown, more: object = {}) => ({
  1: { class_type: "KSampler", inputs: { seed, steps: 20, ...more } },
  2: { class_type: "CLIPTextEncode", inputs: { text } },
  3: { class_type: "PrimitiveInt", inputs: { value: 5 }, _meta: { title: "copies" } },
});

describe("servedValues", () => {
  const find = (served: object, other: object) =>
    servedValues(parseGraph(JSON.stringify(served)), parseGraph(JSON.stringify(other)), defaultRegistry);

  it("finds the values of placeholders, alone or in a text, and of titled primitives", () => {
    const served = sampler("{{seed}}", "a {{animal}} in a forest");
    const other = { ...sampler(7, "a red {fox} in a forest") };
    other[3] = { ...other[3], inputs: { value: 9 } };
    assert.deepEqual(find(served, other), { seed: "7", animal: "red {fox}", copies: "9" });
    assert.deepEqual(find(sampler("{{seed}}", "{{text}}"), sampler(7, "")), { seed: "7", text: "", copies: "5" });
  });

  it("finds none for a graph that differs in anything else", () => {
    const served = sampler("{{seed}}", "a {{animal}} in a forest");
    assert.equal(find(served, sampler(7, "a fox in a desert")), undefined);
    assert.equal(find(served, sampler(7, "a fox in a forest", { cfg: 1 })), undefined);
    assert.equal(find(served, sampler(["3", 0], "a fox in a forest")), undefined);
    assert.equal(find(served, { 1: sampler(7, "")[1] }), undefined);
    assert.equal(find(sampler(7, "{{a}} and {{a}}"), sampler(7, "x and y")), undefined);
    assert.equal(find(sampler(7, "{{a}}{{b}}"), sampler(7, "xy")), undefined);
    const shorter = find(sampler(7, "aba{{x}}aba"), sampler(7, "aba"));
    assert.equal(shorter, undefined);
  });
});

describe("form of a run", () => {
  const graph = readFileSync(join(root, "examples/text-to-image.json"), "utf8").replace(
    '"seed": 7',
    '"seed": 18446744073709551615',
  );

  it("graph of the service: its named parameters, and the message's values for them", () => {
    const text = graph.replace(/"steps": \d+/, '"steps": "{{steps}}"');
    const { parameters, values, text: own } = formOfRun(Buffer.from(text), '{"steps": 4, "other": 1}', true);
    assert.deepEqual(
      parameters.map(({ key, named }) => [key, named]),
      [["steps", true]],
    );
    assert.deepEqual(values, { steps: "4" });
    assert.equal(own, null);
  });

  it("graph of its own: the values that it holds, with every digit, and the graph if any may run", () => {
    const { parameters, values, text } = formOfRun(Buffer.from(graph), null, true);
    assert.equal(values["5.seed"], "18446744073709551615");
    assert.equal(parameters.find(({ key }) => key === "2.text")?.title, "Positive prompt");
    assert.ok(text!.includes("18446744073709551615"));
    assert.equal(formOfRun(Buffer.from(graph), null, false).text, null);
  });
});

describe("filledJob", () => {
  const graph = `{
  "2": { "class_type": "CLIPTextEncode", "inputs": { "text": "a {{animal}}", "clip": ["1", 1] } },
  "1": { "class_type": "KSampler", "inputs": { "seed": 18446744073709551615, "cfg": 1.50, "sampler_name": "euler" } }
}`;
  const fill = (values: string, source = graph) => filledJob(Buffer.from(`{"graph":${source},"values":${values}}`));

  it("puts values in, and keeps every digit and the order of all others", () => {
    const values = '{ "animal": "red fox", "1.cfg": "7.5" }';
    assert.equal(
      fill(values),
      '{"workflow": {"2": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red fox", "clip": ["1", 1]}}, ' +
        '"1": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615, "cfg": 7.5, "sampler_name": "euler"}}}}',
    );
    assert.match(fill('{ "animal": "x", "1.seed": "18446744073709551614" }'), /"seed": 18446744073709551614,/);
  });

  it("refuses values outside the graph's schema, which could become links", async () => {
    const cases: [string, RegExp][] = [
      ["{}", /needs a value for \{\{animal\}\}/],
      ['{ "animal": ["1", 0] }', /^"animal": expected/],
      ['{ "animal": "x", "1.seed": ["2", 0] }', /^"1\.seed": expected/],
      ['{ "animal": "x", "1.sampler_name": "eular" }', /euler/],
    ];
    for (const [values, message] of cases) await refuses(async () => fill(values), "usage.invalid", message);
  });

  it("refuses anything but a graph and values", async () => {
    for (const body of ["7", "[]", "{}", '{"graph":{},"values":[]}', '{"graph":[],"values":{}}']) {
      await refuses(
        async () => filledJob(Buffer.from(body)),
        "usage.invalid",
        /expected { graph, values }, both objects/,
      );
    }
    await refuses(async () => filledJob(Buffer.from([0x7b, 0xff])), "usage.invalid", /expected UTF-8/);
    await refuses(async () => fill("{}", '{"1":7}'), "graph.invalid");
  });
});
