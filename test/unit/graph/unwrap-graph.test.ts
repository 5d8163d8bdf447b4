import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, render, validateGraph as validateWithAll } from "latentkit";
import { parseGraph } from "#src/graph/parse.js";
import { validateGraph } from "#src/graph/validate.js";
import { refuses } from "../../helpers/errors.js";
import { basicRegistry, eventsOf, node, only } from "../../helpers/graph/graph-nodes.js";

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

  it("are no bodies where a node is beside the key", () => {
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

describe("entries of a graph that are no nodes", () => {
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

  it("are errors where they are meant as nodes", async () => {
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

  it("are no graph on their own, and are quoted briefly", async () => {
    await refuses(() => parseGraph({ _comment: "x", a: {} }), "graph.invalid", /expected nodes by id, received none/);
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`${"k".repeat(500)}${i}`, i]));
    assert.ok(parseGraph({ ...graph, ...many }).notes[0]!.length < 400);
  });
});

describe("editor widgets among the inputs of a node", () => {
  it("cause no warning, unlike any other unknown input", () => {
    const left = {
      ...{ upload: "image", image_upload: true, "choose file to upload": "image" },
      ...{ control_after_generate: "fixed", speak_and_recognation: true, uplod: "image" },
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
