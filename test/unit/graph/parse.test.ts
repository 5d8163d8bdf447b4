import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, render, validateGraph as validateWithAll } from "latentkit";
import { findDefinitions, parseGraph } from "#src/graph/parse.js";
import { validateGraph } from "#src/graph/validate.js";
import { defineNode } from "#src/nodes/define.js";
import { refuses } from "../../helpers/errors.js";
import { BASIC_NODES, basicRegistry, chain, eventsOf, node, only } from "../../helpers/graph/graph-nodes.js";

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

  it("are found for every node, with a suggestion if they are not", async () => {
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

  it("may end in a blank, as an old key of ComfyUI does, unless another class has that key", () => {
    const graph = parseGraph({ "1": node("Const ") });
    assert.equal(findDefinitions(graph, registry).get("1"), registry.get("Const"));
    const own = defineNode({ key: "Const ", inputs: {}, outputs: {}, run: () => [] });
    assert.equal(findDefinitions(graph, basicRegistry(own)).get("1"), own);
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

const registry = basicRegistry();
const graph = { "10": node("Const", { value: 1 }), "2": node("Show", { x: ["10", 0] }) };
const editor = { nodes: [], links: [], version: 0.4 };

describe("request bodies around a graph", () => {
  const bodies = {
    "a worker's input": { input: { workflow: graph, images: [] } },
    "a worker's prompt": { id: "x", input: { prompt: graph } },
    "POST /prompt": { prompt: graph, client_id: "c", extra_data: { extra_pnginfo: { workflow: editor } } },
    "a workflow": { workflow: graph },
    "a template": { _meta: { title: "a" }, nodes: graph },
    "all of them": { input: { workflow: { prompt: graph } } },
    "what ComfyUI's editor returns": { workflow: editor, output: graph },
    "ComfyUI's history of a prompt": {
      "0b1c": { prompt: [3, "0b1c", graph, { client_id: "c" }, ["2"]], outputs: {}, status: { messages: [["x", {}]] } },
    },
    "another program's key": { version: 1, data: { graph_json: graph } },
  };
  for (const [name, body] of Object.entries(bodies)) {
    it(`are removed: ${name}`, () => {
      assert.equal(parseGraph(body).prompt, graph);
      assert.deepEqual(parseGraph(JSON.stringify(body)).prompt, graph);
      assert.deepEqual(parseGraph(body).notes, []);
      assert.equal(validateGraph(body, { registry }).ok, true);
    });
  }

  it("keep the order of the nodes inside", () => {
    const text = '{"input": {"workflow": {"10": {"class_type": "A"}, "2": {"class_type": "B"}}}}';
    assert.deepEqual(parseGraph(text).ids, ["10", "2"]);
  });

  it("are refused with two graphs inside, and without any", async () => {
    await refuses(
      () => parseGraph({ a: graph, b: { c: graph } }),
      "graph.invalid",
      /^Graph: expected nodes by id, received none: "a", "b" are not nodes, since they have no class_type\.$/,
    );
    await refuses(
      () => parseGraph({ a: { b: { c: { d: graph } } } }),
      "graph.invalid",
      /^Graph: expected nodes by id, received none: "a" is not a node, since it has no class_type\.$/,
    );
  });

  it("are not bodies if a node is beside the key", () => {
    const ids = parseGraph({ "1": node("Const"), prompt: node("Const"), input: { class_type: "Const" } }).ids;
    assert.deepEqual(ids, ["1", "prompt", "input"]);
  });

  it("are refused with the editor's own format inside, which names the function that converts it", async () => {
    for (const body of [editor, { input: { workflow: editor } }, { prompt: editor }]) {
      await refuses(
        () => parseGraph(body),
        "graph.invalid",
        /^Graph: expected API format, .*convertWorkflow converts\.$/,
      );
    }
  });

  it("are checked for hostile keys inside", async () => {
    const hostile = JSON.parse('{"prompt": {"1": {"class_type": "A", "inputs": {"__proto__": 1}}}}') as object;
    await refuses(() => parseGraph(hostile), "graph.invalid", /__proto__/);
  });
});

describe("entries of a graph that are not nodes", () => {
  const commented = { _comment: "x", ...graph };
  const NOTE = 'Graph: "_comment" is not a node, since it has no class_type; it is ignored.';
  let outputDir: string;
  before(() => {
    outputDir = mkdtempSync(join(tmpdir(), "latentkit-notes-"));
  });
  after(() => rmSync(outputDir, { recursive: true, force: true }));

  it("cause one warning in executeGraph, render and batch", async () => {
    const told = (events: readonly { type: string; message?: string }[]) =>
      events.filter(({ type }) => type === "warning").map(({ message }) => message);
    for (const validate of [true, false]) {
      const events = await eventsOf(commented, { validate });
      assert.deepEqual(
        only(events, "warning").map(({ message }) => message),
        [NOTE],
      );
    }
    assert.deepEqual((await render(commented, { registry, outputDir })).warnings, [NOTE]);
    const path = join(outputDir, "body.json");
    writeFileSync(path, JSON.stringify({ input: { workflow: commented } }));
    assert.deepEqual((await render(path, { registry, outputDir, set: { "10.value": 2 } })).warnings, [NOTE]);
    const events = [];
    for await (const event of batch(path, [{ "10.value": 3 }, { "10.value": 4 }], { registry, outputDir }))
      events.push(event);
    assert.deepEqual(told(events), [NOTE]);
    assert.equal(events.filter(({ type }) => type === "item-done").length, 2);
  });

  it("are removed with one warning", () => {
    const parsed = parseGraph({ ...graph, _comment: "made by hand", version: 1, extra_data: { a: 1 }, tags: [1] });
    assert.deepEqual(Object.keys(parsed.prompt), ["2", "10"]);
    assert.deepEqual(parsed.notes, [
      'Graph: "_comment", "version", "extra_data", "tags" are not nodes, since they have no class_type; they are ignored.',
    ]);
    const verdict = validateGraph({ ...graph, _comment: null }, { registry });
    assert.deepEqual(verdict.ok && verdict.warnings, [
      { message: 'Graph: "_comment" is not a node, since it has no class_type; it is ignored.' },
    ]);
  });

  it("keep the order of the nodes", () => {
    const text = '{"_comment": "x", "10": {"class_type": "A"}, "2": {"class_type": "B"}}';
    assert.deepEqual(parseGraph(text).ids, ["10", "2"]);
    assert.deepEqual(parseGraph(text).prompt, { "10": { class_type: "A" }, "2": { class_type: "B" } });
  });

  it("are errors if they are meant as nodes", async () => {
    await refuses(() => parseGraph({ ...graph, "7": null }), "graph.invalid", /Node 7: expected an object/);
    await refuses(() => parseGraph({ ...graph, "12:3": "x" }), "graph.invalid", /Node 12:3: expected an object/);
    for (const bad of [{ loader: { inputs: {} } }, { "7": {} }, { "7": { _meta: { title: "x" } } }]) {
      const verdict = validateGraph({ ...graph, ...bad }, { registry });
      assert.equal(
        !verdict.ok && verdict.error.message,
        "Cannot execute because a node is missing the class_type property.",
      );
    }
  });

  it("are not a graph on their own, and are quoted briefly", async () => {
    await refuses(() => parseGraph({ _comment: "x", a: {} }), "graph.invalid", /expected nodes by id, received none/);
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`${"k".repeat(500)}${i}`, i]));
    assert.ok(parseGraph({ ...graph, ...many }).notes[0]!.length < 400);
  });
});

describe("editor widgets among the inputs of a node", () => {
  it("cause no warning, unlike any other unknown input", () => {
    const left = {
      upload: "image",
      image_upload: true,
      "choose file to upload": "image",
      control_after_generate: "fixed",
      speak_and_recognation: true,
      uplod: "image",
    };
    const verdict = validateWithAll({
      "1": node("EmptyLatentImage", { width: 64, height: 64, batch_size: 1, ...left }),
      "2": node("PreviewImage", { images: ["3", 0] }),
      "3": node("VAEDecode", { samples: ["1", 0], vae: ["4", 2] }),
      "4": node("CheckpointLoaderSimple", { ckpt_name: "preview-sd15.safetensors" }),
    });
    assert.deepEqual(verdict.ok && verdict.warnings.map(({ input }) => input), ["uplod"]);
  });
});
