import assert from "node:assert/strict";
import { convertWorkflow } from "latentkit";
import { refuses } from "../../../helpers/errors.js";

type Rest = Readonly<Record<string, unknown>>;

const socket = (name: string, type: string, link: number | null = null) => ({ name, type, link });
const widget = (name: string, link: number | null = null) => ({ ...socket(name, "INT", link), widget: { name } });
const link = (id: number, from: number, slot: number, to: number, at: number) => ({
  id,
  origin_id: from,
  origin_slot: slot,
  target_id: to,
  target_slot: at,
});

/** An inner EmptyImage of 64 x 64 whose width and height the subgraph has as inputs, behind a mask that it does not use. */
const sized = {
  id: "sized",
  inputs: [
    { name: "mask", type: "MASK" },
    { name: "width", type: "INT" },
    { name: "height", type: "INT" },
  ],
  outputs: [{ name: "IMAGE", type: "IMAGE" }],
  nodes: [
    { id: 1, type: "EmptyImage", inputs: [widget("width", 1), widget("height", 2)], widgets_values: [64, 64, 1, 5] },
  ],
  links: [link(1, -10, 1, 1, 0), link(2, -10, 2, 1, 1), link(3, 1, 0, -20, 0)],
};

/** A subgraph around `sized`: its inputs lead to the inner one's in the other order. */
const around = (inner: Rest) => ({
  id: "around",
  inputs: [
    { name: "tall", type: "INT" },
    { name: "wide", type: "INT" },
  ],
  outputs: [{ name: "IMAGE", type: "IMAGE" }],
  nodes: [{ id: 4, type: "sized", ...inner }],
  links: [link(1, -10, 0, 4, 2), link(2, -10, 1, 4, 1), link(3, 4, 0, -20, 0)],
});

function sizeOf(instance: Rest, type = "sized", inner: Rest = {}, links: object[] = []): unknown[] {
  const nodes = [
    { id: 3, type, ...instance },
    { id: 5, type: "SolidMask", widgets_values: [1, 16, 16] },
    { id: 6, type: "PrimitiveInt", widgets_values: [7, "fixed"] },
    { id: 9, type: "SaveImage", inputs: [socket("images", "IMAGE", 90)], widgets_values: ["x"] },
  ];
  const workflow = {
    nodes,
    links: [[90, 3, 0, 9, 0, "IMAGE"], ...links],
    definitions: { subgraphs: [sized, around(inner)] },
  };
  const graph = convertWorkflow(workflow) as Record<string, { inputs: Rest }>;
  const { width, height } = graph[type === "sized" ? "3:1" : "3:4:1"]!.inputs;
  return [width, height];
}

describe("graph/workflow/instances", () => {
  it("gives the values of a node without inputs to the widgets of its definition", () => {
    assert.deepEqual(sizeOf({ inputs: [], widgets_values: [32, 48] }), [32, 48]);
    assert.deepEqual(sizeOf({ widgets_values: [32, 48] }), [32, 48]);
    assert.deepEqual(sizeOf({ widgets_values: [] }), [64, 64]);
    assert.deepEqual(sizeOf({ widgets_values: [null, 48] }), [64, 48]);
    assert.deepEqual(sizeOf({ widgets_values: [32] }), [32, 64]);
  });

  it("follows the definition if the file lists some inputs, the file if it lists all", () => {
    const values = { widgets_values: [32, 48] };
    assert.deepEqual(sizeOf({ inputs: [socket("mask", "MASK")], ...values }), [32, 48]);
    assert.deepEqual(sizeOf({ inputs: [widget("height")], ...values }), [32, 48]);
    assert.deepEqual(
      sizeOf({ inputs: [widget("height"), socket("mask", "MASK"), widget("width")], ...values }),
      [48, 32],
    );
    const unmarked = [socket("mask", "MASK"), socket("width", "INT"), socket("height", "INT")];
    assert.deepEqual(sizeOf({ inputs: unmarked, ...values }), [32, 48]);
  });

  it("takes values by their names", () => {
    const named = { height: 48, width: 32 };
    assert.deepEqual(sizeOf({ widgets_values: named }), [32, 48]);
    assert.deepEqual(sizeOf({ widgets_values: [1, 2], widgets_values_named: named }), [32, 48]);
    const proxyWidgets = [
      ["1", "batch_size"],
      ["1", "width"],
    ];
    assert.deepEqual(
      sizeOf({ properties: { proxyWidgets }, widgets_values_named: { height: 48, batch_size: 2 } }),
      [64, 48],
    );
  });

  it("takes values of promoted widgets behind those of the inputs", () => {
    const proxyWidgets = [["1", "color"]];
    const nodes = [{ id: 3, type: "sized", properties: { proxyWidgets }, widgets_values: [32, 48, 200] }];
    const links = [[90, 3, 0, 9, 0, "IMAGE"]];
    const save = { id: 9, type: "SaveImage", inputs: [socket("images", "IMAGE", 90)], widgets_values: ["x"] };
    const graph = convertWorkflow({ nodes: [...nodes, save], links, definitions: { subgraphs: [sized] } });
    const { inputs } = graph["3:1"] as { inputs: Rest };
    assert.deepEqual(inputs, { width: 32, height: 48, batch_size: 1, color: 200 });
  });

  it("follows links to inputs that the file does not list", () => {
    const links = [[91, 6, 0, 3, 2, "INT"]];
    assert.deepEqual(sizeOf({ widgets_values: [32, 48] }, "sized", {}, links), [32, ["6", 0]]);
    const listed = { inputs: [widget("height", 91)], widgets_values: [32, 48] };
    assert.deepEqual(sizeOf(listed, "sized", {}, [[91, 6, 0, 3, 0, "INT"]]), [32, ["6", 0]]);
  });

  it("follows the link of an input that the file lists twice, once without it", () => {
    const links = [link(70, 6, 0, 3, 1)];
    const [wide, high] = [widget("width", 70), widget("height")];
    const lists = [
      [socket("mask", "MASK"), widget("width"), widget("height"), socket("mask", "MASK"), wide, high],
      [socket("mask", "MASK"), wide, high, socket("mask", "MASK"), widget("width"), widget("height")],
      [socket("mask", "MASK"), socket("mask", "MASK"), wide, widget("width"), high, widget("height")],
    ];
    for (const inputs of lists)
      assert.deepEqual(sizeOf({ inputs, widgets_values: [32, 48] }, "sized", {}, links), [["6", 0], 48]);
  });

  it("keeps a value whose input has a link that the file lacks, as other nodes do", () => {
    const inputs = [socket("mask", "MASK"), widget("width", 70), widget("height")];
    assert.deepEqual(sizeOf({ inputs, widgets_values: [32, 48] }), [32, 48]);
  });

  it("leads through subgraphs inside, whether their nodes list inputs or not", () => {
    const values = { widgets_values: [48, 32] };
    assert.deepEqual(sizeOf(values, "around", { widgets_values: [1, 2] }), [32, 48]);
    const listed = [socket("mask", "MASK"), widget("width", 2), widget("height", 1)];
    assert.deepEqual(sizeOf(values, "around", { inputs: listed, widgets_values: [1, 2] }), [32, 48]);
    assert.deepEqual(sizeOf({}, "around", { widgets_values: [1, 2] }), [1, 2]);
  });

  it("passes on, through a bypassed node, an input that the file does not list", () => {
    const blend = { ...sized, inputs: [{ name: "picture", type: "IMAGE" }], nodes: [], links: [] };
    const nodes = [
      { id: 1, type: "EmptyImage", widgets_values: [8, 8, 1, 0] },
      { id: 3, type: "sized", mode: 4, outputs: [{ type: "IMAGE" }] },
      { id: 9, type: "SaveImage", inputs: [socket("images", "IMAGE", 2)], widgets_values: ["x"] },
    ];
    const links = [
      [1, 1, 0, 3, 0, "IMAGE"],
      [2, 3, 0, 9, 0, "IMAGE"],
    ];
    const graph = convertWorkflow({ nodes, links, definitions: { subgraphs: [blend] } });
    assert.deepEqual((graph["9"] as { inputs: Rest }).inputs, { filename_prefix: "x", images: ["1", 0] });
  });

  it("bounds the inputs of all nodes", async () => {
    const inputs = Array.from({ length: 100_000 }, (_, at) => ({ name: `i${at}`, type: "INT" }));
    const nodes = Array.from({ length: 1000 }, (_, id) => ({ id, type: "wide" }));
    const workflow = { nodes, links: [], definitions: { subgraphs: [{ id: "wide", inputs, nodes: [], links: [] }] } };
    const expected = /^Workflow: expected at most 4000000 inputs of all nodes, received more\.$/;
    await refuses(() => convertWorkflow(workflow), "graph.invalid", expected);
  });
});
