import assert from "node:assert/strict";
import { closest } from "#src/base/suggest.js";
import { findDefinitions, parseGraph } from "#src/graph/parse.js";
import { withoutUnknown } from "#src/graph/topology.js";
import { validateGraph } from "#src/graph/validate.js";
import { refuses } from "../../helpers/errors.js";
import { basicRegistry, endOf, eventsOf, node } from "../../helpers/graph/graph-nodes.js";
import { growsLinearly } from "../../helpers/growth.js";

const registry = basicRegistry();
const refusal = (graph: object) => refuses(() => findDefinitions(parseGraph(graph), registry), "graph.unknown-class");

describe("unknown classes", () => {
  const titled = (classType: string, title: string) => ({ ...node(classType), _meta: { title } });

  it("are all named, with their nodes and titles", async () => {
    const error = await refusal({
      "3": titled("KSampler", "Base pass"),
      "4": node("Const"),
      "5": node("LoraLoader"),
      "9": titled("KSampler", " "),
      "10": node("Cnst"),
    });
    assert.equal(
      error.message,
      '4 nodes have 3 unknown classes: "KSampler" (nodes 3 "Base pass", 9); "LoraLoader" (node 5); "Cnst" (node 10, did you mean Const?). Define unknown classes with defineNode and pass your registry, remove their nodes, or name targets that do not need them.',
    );
    assert.deepEqual(error.details.unknownClasses, [
      { classType: "KSampler", count: 2, nodeIds: ["3", "9"], suggestion: undefined },
      { classType: "LoraLoader", count: 1, nodeIds: ["5"], suggestion: undefined },
      { classType: "Cnst", count: 1, nodeIds: ["10"], suggestion: "Const" },
    ]);
  });

  it("name the node's title if there is one node", async () => {
    const error = await refusal({ "68": titled("KSampler", "Base pass") });
    assert.equal(
      error.message,
      'Node 68 "Base pass": expected a known class_type, received "KSampler". Define it with defineNode and pass your registry, remove the node, or name targets that do not need it.',
    );
    const { message } = await refusal({ "6\u202e8": titled("K\u2066\x1b[2J", "Base\u200f\x9b") });
    assert.match(message, /^Node 6\\u202e8 "Base\\u200f\\u009b": .* received "K\\u2066\\u001b\[2J"\. Define/);
  });

  it("are left out if no target needs them, with what reads them, and with a note", async () => {
    const graph = parseGraph({
      "9": node("Show", { x: ["1", 0] }),
      "1": node("Const", { value: 1 }),
      "2": node("A", { x: ["1", 0] }),
      "3": node("Show", { x: ["2", 0] }),
      "4": node("B"),
    });
    const { prompt, ids, notes } = withoutUnknown(graph, registry, ["9"]);
    assert.deepEqual(
      [Object.keys(prompt), ids],
      [
        ["1", "9"],
        ["1", "9"],
      ],
    );
    const note = "Graph: nodes 2 (A), 4 (B) are left out: their classes are unknown, and no target needs them.";
    assert.deepEqual(notes, [note]);
    for (const targets of [undefined, ["3"], ["9", "2"]]) {
      assert.equal(withoutUnknown(graph, registry, targets), graph);
      assert.equal(validateGraph(graph.prompt, { registry, targets }).ok, false);
    }
    const verdict = validateGraph(graph.prompt, { registry, targets: ["9"] });
    assert.deepEqual([verdict.ok, verdict.warnings], [true, [{ message: note }]]);
    assert.equal(endOf(await eventsOf(graph.prompt, { targets: ["9"] })).status, "success");
  });

  it("are data of the validation", () => {
    const verdict = validateGraph({ "1": node("A"), "2": node("A"), "3": node("B") }, { registry });
    assert.ok(!verdict.ok);
    assert.equal(verdict.error.message, "Cannot execute because node A does not exist.");
    assert.deepEqual(JSON.parse(JSON.stringify(verdict.error.extra_info)), {
      unknown_classes: [
        { class_type: "A", count: 2, node_ids: ["1", "2"] },
        { class_type: "B", count: 1, node_ids: ["3"] },
      ],
    });
  });

  it("are named at bounded length and in linear time in a hostile graph", async () => {
    const long = "x".repeat(10_000);
    const hostile = (length: number) =>
      Object.fromEntries(
        Array.from({ length }, (_, i) => [`${long.slice(0, 200)}${i}`, titled(`${i} ${long.slice(0, 300)}`, long)]),
      );
    await growsLinearly(1250, hostile, refusal);
    const error = await refusal(hostile(20_000));
    assert.ok(error.message.startsWith("20000 nodes have 20000 unknown classes: "), error.message.slice(0, 80));
    assert.ok(/; and \d+ more\. Define/.test(error.message) && error.message.length < 4200, error.message.slice(-80));
    assert.ok(JSON.stringify(error.details).length < 50_000);
    const same = await refusal(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [i, node("Same")])));
    assert.match(same.message, /^20000 nodes have 1 unknown class: "Same" \(nodes 0, 1, .*and 19992 more\)\. Define/);
    assert.ok(same.message.length < 300);
  });

  it("get no suggestion that is not close", () => {
    const known = ["CLIPTextEncode", "LoadImage", "LoadImageMask", "EmptyLatentImage", "SaveImage", "VAEDecode"];
    const pairs = {
      ClipTextEncode: "CLIPTextEncode",
      "Load Image": "LoadImage",
      VAEDecodde: "VAEDecode",
      CLIPTextEncodeSDXL: undefined,
      CLIPTextEncodeSDXLRefiner: undefined,
      EmptySD3LatentImage: "EmptyLatentImage",
      EmptyHunyuanLatentVideo: undefined,
      VAEDecodeTiled: undefined,
      LoadImageOutput: undefined,
      KSampler: undefined,
    };
    for (const [word, near] of Object.entries(pairs)) assert.equal(closest(word, known), near, word);
  });
});
