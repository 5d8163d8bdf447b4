import assert from "node:assert/strict";
import { describe as inWords } from "#src/base/errors.js";
import { type ValidateOptions, type Validation, validateGraph } from "#src/graph/validate.js";
import { printJson } from "#src/io/json/lossless.js";
import { defineNode } from "#src/nodes/define.js";
import { boolean, choice, float, image, int, list, seed, socket, text } from "#src/nodes/inputs.js";
import { basicRegistry, chain, node } from "../../helpers/graph/graph-nodes.js";
import { growsLinearly } from "../../helpers/growth.js";

const PICTURE = defineNode({ key: "Picture", inputs: {}, outputs: { IMAGE: "IMAGE" }, run: () => [] });
const NOISY = defineNode({
  key: "Noisy",
  inputs: {
    seed: seed(),
    strength: float({ min: 0, max: 1 }),
    mode: choice(["add", "average"]),
    name: text({ optional: true, default: "x" }),
    flag: boolean({ optional: true }),
    image: image({ optional: true }),
    items: list({ optional: true }),
    either: socket("IMAGE,MASK", { optional: true }),
    place: choice(({ host }) => host?.checkpoints() ?? [], { optional: true }),
  },
  outputs: { LATENT: "LATENT" },
  outputNode: true,
  run: () => [],
});
type Inputs = Record<string, { inputs: Record<string, unknown> }>;
const good = { seed: 1, strength: 0.5, mode: "add" };

const check = (graph: unknown, options: Partial<ValidateOptions> = {}): Validation =>
  validateGraph(graph, { registry: basicRegistry(PICTURE, NOISY), ...options });
const noisy = (inputs: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  check({ "1": node("Noisy", { ...good, ...inputs }), ...more });
const codes = ({ nodeErrors }: Validation) =>
  Object.values(nodeErrors).flatMap(({ errors }) => errors.map(({ code, input }) => [code, input]));
const outputsOf = (verdict: Validation) => (verdict.ok ? verdict.outputs : verdict.error.type);

describe("validateGraph", () => {
  it("names node, input, value, expectation and suggestion", () => {
    const verdict = noisy({ mode: "averge", strength: 1.5 });
    assert.equal(verdict.ok, false);
    const [strength, mode] = verdict.nodeErrors["1"]!.errors;
    assert.equal(strength!.sentence, 'Node 1 (Noisy), input "strength": expected a number from 0 to 1, received 1.5.');
    assert.equal(
      mode!.sentence,
      'Node 1 (Noisy), input "mode": expected add or average, received "averge". Did you mean average?',
    );
    assert.deepEqual(
      [mode!.type, mode!.input, mode!.received, mode!.expected, mode!.suggestion],
      ["value_not_in_list", "mode", '"averge"', "add or average", "average"],
    );
  });

  it("says which part of a link is wrong, and that a text is not a number", () => {
    const sentenceOf = (link: unknown) => JSON.stringify(noisy({ image: link }, { "2": node("Picture", {}) }));
    assert.match(sentenceOf([2, 0]), /expected a node's id as text, received 2\./);
    assert.match(sentenceOf(["9", 0]), /expected a link to a node of the graph, received node 9\./);
    assert.match(sentenceOf(["2", "0"]), /expected the number of an output, received [\\"]*\\"0[\\"]*\./);
  });

  it("gives one error for each wrong input of any kind", () => {
    const cases: [string, unknown, string][] = [
      ["seed", -1, "input.below-minimum"],
      ["seed", 2n ** 64n, "input.above-maximum"],
      ["seed", "x", "input.wrong-type"],
      ["seed", null, "input.missing"],
      ["strength", Number.NaN, "input.not-finite"],
      ["strength", { a: 1 }, "input.wrong-type"],
      ["strength", [1], "link.bad"],
      ["mode", 1, "input.not-in-list"],
      ["name", null, "input.wrong-type"],
      ["flag", "yes", "input.wrong-type"],
      ["image", "hello", "input.wrong-type"],
      ["either", 5, "input.wrong-type"],
      ["place", "b", "input.not-in-list"],
      ["image", ["1", -1], "link.bad"],
      ["image", ["1", true], "link.bad"],
      ["image", [1, 0], "link.bad"],
      ["image", ["9", 0], "link.bad"],
      ["image", ["2", 1], "link.bad"],
      ["image", ["2", 0.5], "link.bad"],
      ["image", ["2", 2n ** 70n], "link.bad"],
      ["image", ["3", 0], "link.type-mismatch"],
      ["either", ["3", 0], "link.type-mismatch"],
    ];
    for (const [input, value, code] of cases) {
      const verdict = noisy({ [input]: value }, { "2": node("Picture"), "3": node("Const", { value: 1 }) });
      const errors = Object.values(verdict.nodeErrors).flatMap((entry) => entry.errors);
      assert.deepEqual(
        errors.map((error) => [error.code]),
        [[code]],
        `${input} ${inWords(value)}`,
      );
      assert.match(errors[0]!.sentence, new RegExp(`^Node 1 \\(Noisy\\), input "${input}": expected .*received `));
    }
  });

  it("accepts wrapped lists, absent optional inputs, unions and host choices", () => {
    const verdict = noisy(
      {
        items: { __value__: [1, 2] },
        image: null,
        either: ["2", 0],
        place: "a",
        seed: "18446744073709551615",
      },
      { "2": node("Picture") },
    );
    assert.deepEqual(verdict, {
      ok: false,
      error: (verdict as { error: unknown }).error,
      nodeErrors: verdict.nodeErrors,
      warnings: [],
    });
    assert.deepEqual(codes(verdict), [["input.not-in-list", "place"]]);
    const host = { checkpoints: () => ["a"] };
    const placed = check({ "1": node("Noisy", { ...good, place: "a" }) }, { host });
    assert.equal(placed.ok, true);
  });

  it("warns of unknown inputs with a suggestion", () => {
    const verdict = noisy({ strenght: 1, whatever: ["9", 0] });
    assert.equal(verdict.ok, true);
    assert.deepEqual(
      verdict.warnings.map(({ input, suggestion }) => [input, suggestion]),
      [
        ["strenght", "strength"],
        ["whatever", undefined],
      ],
    );
    assert.match(verdict.warnings[0]!.message, /Node 1 \(Noisy\), input "strenght": .*Did you mean strength\?/);
  });

  it("drops bad outputs and keeps the good ones", () => {
    const graph = {
      a: node("Const", { value: 1 }),
      b: node("Const", { value: 9999 }),
      good: node("Show", { x: ["a", 0] }),
      bad: node("Show", { x: ["b", 0] }),
      unreached: node("Const", { value: "no" }),
    };
    const verdict = check(graph);
    assert.deepEqual(outputsOf(verdict), ["good"]);
    assert.deepEqual(Object.keys(verdict.nodeErrors), ["b"]);
    assert.deepEqual(verdict.nodeErrors.b!.dependent_outputs, ["bad"]);
    assert.equal(check({ ...graph, a: node("Const") }).ok, false);
  });

  it("finds its roots: targets, output nodes, else nodes that write or show", () => {
    const writer = defineNode({ key: "Writer", inputs: {}, outputs: {}, writesFiles: true, run: () => [] });
    const teller = defineNode({ key: "Teller", inputs: {}, outputs: {}, hasUi: true, run: () => [] });
    const registry = basicRegistry(writer, teller);
    const graph = { w: node("Writer"), t: node("Teller"), c: node("Const", { value: 1 }) };
    const roots = (more: object, options: Partial<ValidateOptions> = {}) =>
      outputsOf(validateGraph({ ...graph, ...more }, { registry, ...options }));
    assert.deepEqual(roots({}), ["w", "t"]);
    assert.deepEqual(roots({ o: node("Show", { x: 1 }) }), ["o"]);
    assert.deepEqual(roots({}, { targets: ["c", "w", "c"] }), ["c", "w"]);
    assert.deepEqual(roots({}, { partialExecutionTargets: ["t", "c"] }), ["t"]);
    assert.deepEqual(roots({}, { partialExecutionTargets: null }), ["w", "t"]);
    assert.equal(roots({}, { partialExecutionTargets: [] }), "prompt_no_outputs");
    assert.equal(roots({}, { targets: [] }), "prompt_no_outputs");
    const wrong = validateGraph(graph, { registry, targets: ["W"] });
    assert.equal(
      wrong.ok || wrong.error.sentence,
      'Target: expected the id of a node of the graph, received "W". Did you mean w?',
    );
  });

  it("returns errors of the whole graph as data", () => {
    for (const [prompt, type] of [
      [undefined, "no_prompt"],
      [{}, "prompt_no_outputs"],
      ["{", "invalid_prompt"],
      [[], "invalid_prompt"],
      [{ "1": 5 }, "invalid_prompt"],
      [{ "1": node("Nope") }, "invalid_prompt"],
      [JSON.parse('{"1": {"class_type": "Show", "inputs": {"__proto__": 1}}}'), "invalid_prompt"],
    ] as const) {
      const verdict = check(prompt);
      assert.equal(verdict.ok, false);
      assert.equal(verdict.ok || verdict.error.type, type);
      assert.deepEqual(verdict.nodeErrors, {});
    }
  });

  it("accepts ids and inputs named like methods of Object", () => {
    const graph = {
      toString: node("Const", { value: 5000, valueOf: 1 }),
      hasOwnProperty: node("Show", { x: ["toString", 0] }),
    };
    const verdict = check(graph);
    assert.deepEqual(codes(verdict), [["input.above-maximum", "value"]]);
    assert.deepEqual(Object.values(verdict.nodeErrors)[0]!.dependent_outputs, ["hasOwnProperty"]);
    assert.equal(check({ a: node("Show", { toString: 1 }) }).ok, false);
  });

  it("names cycles, keeps outputs that do not need them", () => {
    const graph = {
      3: node("Add", { a: ["7", 0], b: 1 }),
      7: node("Add", { a: ["3", 0], b: 1 }),
      5: node("Add", { a: ["3", 0], b: 1 }),
      bad: node("Show", { x: ["5", 0] }),
      good: node("Show", { x: 1 }),
    };
    const verdict = check(graph);
    assert.deepEqual(outputsOf(verdict), ["good"]);
    assert.deepEqual(verdict.nodeErrors["3"]!.errors[0]!.details, "cycle: 3 → 7 → 3");
    assert.deepEqual(verdict.nodeErrors["3"]!.dependent_outputs, ["bad"]);
  });

  it("applies a node's own validation, which exempts the inputs it reads", () => {
    let returned: unknown;
    let seen: unknown;
    const own = defineNode({
      key: "Own",
      inputs: { a: int({ max: 5 }), b: int({ max: 5 }), c: int({ optional: true }) },
      outputs: {},
      outputNode: true,
      validate: (inputs) => {
        seen = [inputs.a, "b" in inputs, "c" in inputs];
        if (returned instanceof Error) throw returned;
        return returned as string;
      },
      run: () => [],
    });
    const ask = (inputs: object) =>
      validateGraph({ "1": node("Own", { ...inputs }) }, { registry: basicRegistry(own) });
    assert.equal(ask({ a: "99", b: 1 }).ok, true);
    assert.deepEqual(seen, [99, true, false]);
    assert.deepEqual(codes(ask({ a: 99, b: 99 })), [["input.above-maximum", "b"]]);
    returned = "a is odd.";
    const verdict = ask({ a: 99, b: 1 });
    assert.equal(verdict.nodeErrors["1"]!.errors[0]!.sentence, 'Node 1 (Own), input "a": a is odd.');
    returned = new Error("boom");
    assert.match(
      ask({ a: 1, b: 1 }).nodeErrors["1"]!.errors[0]!.sentence,
      /Node 1 \(Own\): its validation failed: boom\./,
    );
    returned = Promise.reject(new Error("late"));
    assert.match(ask({ a: 1, b: 1 }).nodeErrors["1"]!.errors[0]!.sentence, /must return at once/);
  });

  it("cuts the list of outputs if each of many depends on a long chain", () => {
    const bad = chain(5000) as Inputs;
    for (let i = 1; i <= 5000; i++) bad[`o${i}`] = node("Show", { x: [`n${i}`, 0] }) as Inputs[string];
    bad.n0!.inputs.value = 5000;
    const { length } = check(bad).nodeErrors.n0!.dependent_outputs;
    assert.ok(length > 500 && length < 2000, `${length} of 5001`);
  });

  describe("takes linear time for", () => {
    it("a long chain", async () => {
      await growsLinearly(625, chain, check);
      assert.deepEqual(outputsOf(check(chain(10_000))), ["out"]);
    });

    it("a deep diamond", async () => {
      const diamond = (size: number) => chain(size, true);
      await growsLinearly(625, diamond, check);
      assert.deepEqual(outputsOf(check(diamond(20_000))), ["out"]);
    });

    it("a hub", async () => {
      const hub = (size: number) => {
        const graph: Record<string, unknown> = { hub: node("Const", { value: 5000 }) };
        for (let i = 0; i < size; i++) graph[`o${i}`] = node("Show", { x: ["hub", 0] });
        return graph;
      };
      await growsLinearly(625, hub, check);
      assert.equal(check(hub(20_000)).nodeErrors.hub!.dependent_outputs.length, 20_000);
    });

    it("a ring", async () => {
      const ring = (size: number) => {
        const graph = chain(size) as Inputs;
        graph.n1!.inputs.a = [`n${size}`, 0];
        return graph;
      };
      await growsLinearly(625, ring, check);
      const { details, extra_info } = check(ring(20_000)).nodeErrors.n1!.errors[0]!;
      const shown = Array.from({ length: 20 }, (_, i) => `n${i + 1}`).join(" → ");
      assert.equal(details, `cycle: ${shown} → 19980 more → n1`);
      assert.equal((extra_info as { cycle: string[] }).cycle.length, 20_000);
    });
  });

  it("gives errors that print as JSON with every digit", () => {
    const verdict = noisy({ seed: 2n ** 64n, strength: [1n, { deep: 2n ** 70n }, 3, 4] });
    const printed = JSON.stringify(verdict);
    assert.match(printed, /"max":"18446744073709551615"/);
    assert.match(printed, /"received_value":"18446744073709551616"/);
    assert.match(printed, /"received_value":\[1,\{"deep":"1180591620717411303424"\},3,4\]/);
    assert.deepEqual(JSON.parse(printJson(verdict)), JSON.parse(printed));
  });
});
