import assert from "node:assert/strict";
import { findDefinitions, parseGraph } from "#src/graph/parse.js";
import { refuses } from "../../helpers/errors.js";
import { BASIC_NODES, basicRegistry, chain, node } from "../../helpers/graph/graph-nodes.js";

describe("parseGraph", () => {
  it("reads objects and text, and keeps order and digits of the file", () => {
    const text =
      '{"10": {"class_type": "A", "inputs": {"seed": 18446744073709551615}, "_meta": {"title": "x"}}, "2": {}}';
    const graph = parseGraph(text);
    assert.deepEqual(graph.ids, ["10", "2"]);
    assert.deepEqual(graph.prompt["10"], {
      class_type: "A",
      inputs: { seed: 18446744073709551615n },
      _meta: { title: "x" },
    });
    const object = { "1": node("A", { seed: 5n }) };
    assert.equal(parseGraph(object).prompt, object);
  });

  it("refuses anything but a graph", async () => {
    await refuses(() => parseGraph(undefined), "graph.empty");
    await refuses(() => parseGraph(null), "graph.empty");
    for (const input of [[], 5, new Map()])
      await refuses(() => parseGraph(input), "graph.invalid", /expected an object/);
    await refuses(() => parseGraph("{"), "graph.invalid-json", /line 1/);
    await refuses(
      () => parseGraph({ nodes: [], links: [] }),
      "graph.invalid",
      /expected API format, received a workflow as the editor saves it/,
    );
    for (const bad of [5, null, "x", [], undefined]) {
      await refuses(() => parseGraph({ "7": bad }), "graph.invalid", /Node 7: expected an object/);
    }
  });

  it("refuses hostile keys and depth in objects too", async () => {
    for (const key of ["__proto__", "constructor", "prototype"]) {
      const hostile = JSON.parse(`{"1": {"class_type": "A", "inputs": {"x": {"${key}": 1}}}}`) as object;
      await refuses(() => parseGraph(hostile), "graph.invalid", new RegExp(key));
      await refuses(() => parseGraph(JSON.parse(`{"${key}": {"class_type": "A"}}`)), "graph.invalid");
      await refuses(() => parseGraph(JSON.stringify(hostile)), "graph.invalid-json", new RegExp(key));
    }
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    await refuses(() => parseGraph({ "1": node("A", { x: deep }) }), "graph.invalid", /256 levels/);
    await refuses(() => parseGraph(`{"1": {"inputs": ${"[".repeat(100_000)}`), "graph.invalid-json", /256 levels/);
    const cyclic: Record<string, unknown> = { class_type: "A" };
    cyclic.inputs = cyclic;
    await refuses(() => parseGraph({ "1": cyclic }), "graph.invalid", /256 levels/);
  });

  it("refuses more than 200,000 nodes", async () => {
    const many = Object.fromEntries(Array.from({ length: 200_001 }, (_, i) => [`n${i}`, {}]));
    await refuses(() => parseGraph(many), "graph.invalid", /200000 nodes/);
  });
});

describe("node classes", () => {
  const registry = basicRegistry();

  it("are found for every node, with a suggestion where they are not", async () => {
    assert.equal(findDefinitions(parseGraph(chain(2)), registry).get("n1"), BASIC_NODES[1]);
    const unknown = parseGraph({ "1": node("Cnst") });
    await refuses(
      () => findDefinitions(unknown, registry),
      "graph.unknown-class",
      /Node 1: .*"Cnst". Did you mean Const\?/,
    );
    await refuses(() => findDefinitions(parseGraph({ "1": { inputs: {} } }), registry), "graph.invalid", /class_type/);
    for (const class_type of [null, 5, [], {}]) {
      await refuses(() => findDefinitions(parseGraph({ "1": { class_type } }), registry), "graph.unknown-class");
    }
    for (const class_type of ["toString", "__proto__", "constructor"]) {
      await refuses(() => findDefinitions(parseGraph({ "1": { class_type } }), registry), "graph.unknown-class");
    }
  });

  it("follow aliases: whole key before prefix, longest prefix first", () => {
    const classAliases = { "easy ": "", "easy S": "S", Sum: "Add", Su: "Nope" };
    const graph = parseGraph(
      { "1": node("easy Const"), "2": node("Sum"), "3": node("easy Show"), "4": node("Add") },
      { classAliases },
    );
    assert.deepEqual(
      [...findDefinitions(graph, registry).values()].map(({ key }) => key),
      ["Const", "Add", "Show", "Add"],
    );
    assert.equal((graph.prompt["1"] as { class_type: string }).class_type, "easy Const");
  });
});
