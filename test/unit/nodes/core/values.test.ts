import assert from "node:assert/strict";
import { executeGraph, invokeNode, type Latent, registry, Tensor, validateGraph } from "latentkit";
import { refuses } from "../../../helpers/errors.js";

for (const key of ["MarkdownNote", "Note"]) {
  describe(key, () => {
    it("has no outputs and needs no text", async () => {
      assert.deepEqual((await invokeNode(key, {})).result, []);
      assert.deepEqual((await invokeNode(key, { text: "read me" })).result, []);
    });

    it("does not keep a graph from being valid", async () => {
      const latent = { class_type: "EmptyLatentImage", inputs: { width: 16, height: 16, batch_size: 1 } };
      const save = { class_type: "SaveLatent", inputs: { samples: ["1", 0], filename_prefix: "a" } };
      const { ok } = await validateGraph({ 1: latent, 2: save, 3: { class_type: key, inputs: { text: "a" } } });
      assert.equal(ok, true);
    });
  });
}

const PRIMITIVES: [key: string, passed: [value: unknown, expected: unknown][], wrong: unknown][] = [
  [
    "PrimitiveBoolean",
    [
      [true, true],
      ["false", false],
    ],
    "maybe",
  ],
  [
    "PrimitiveFloat",
    [
      [0.1, 0.1],
      ["-2.5", -2.5],
      [3n, 3],
    ],
    "a",
  ],
  [
    "PrimitiveInt",
    [
      [7, 7],
      ["-3", -3],
      [2n ** 63n - 1n, 2n ** 63n - 1n],
    ],
    "1.5",
  ],
  [
    "PrimitiveString",
    [
      ["a b", "a b"],
      [7, "7"],
    ],
    {},
  ],
  ["PrimitiveStringMultiline", [["a\\nb", "a\\nb"]], []],
];

for (const [key, passed, wrong] of PRIMITIVES) {
  describe(key, () => {
    it("passes its value on, converted", async () => {
      for (const [value, expected] of passed) assert.equal((await invokeNode(key, { value })).result[0], expected);
    });

    it("refuses values of other types", async () => {
      await refuses(invokeNode(key, { value: wrong }), "input.wrong-type", /input "value"/);
    });
  });
}

describe("PrimitiveNode", () => {
  it("gives its value to the input it is linked to", async () => {
    const graph = {
      1: { class_type: "PrimitiveNode", inputs: { value: 32 } },
      2: { class_type: "EmptyLatentImage", inputs: { width: ["1", 0], height: 16, batch_size: 1 } },
    };
    const latents: Latent[] = [];
    for await (const event of executeGraph(graph, { targets: ["2"] }))
      if (event.type === "run-done") latents.push(event.outputs["2"]![0] as Latent);
    assert.deepEqual(
      latents.map(({ samples }) => samples.shape),
      [[1, 4, 2, 4]],
    );
  });
});

describe("Reroute", () => {
  it("passes any value on as it is", async () => {
    for (const value of [7, "a", Tensor.zeros([1]), [1, 2], null])
      assert.equal((await invokeNode("Reroute", { "": value })).result[0], value);
    assert.deepEqual(registry.get("Reroute")!.outputs, [{ name: "", type: "*", list: false }]);
  });

  it("validates between a link and an input of any type", async () => {
    const graph = {
      1: { class_type: "EmptyLatentImage", inputs: { width: 16, height: 16, batch_size: 1 } },
      2: { class_type: "Reroute", inputs: { "": ["1", 0] } },
      3: { class_type: "SaveLatent", inputs: { samples: ["2", 0], filename_prefix: "a" } },
    };
    const { ok } = await validateGraph(graph);
    assert.equal(ok, true);
  });
});

describe("PreviewAny", () => {
  const textOf = async (source: unknown) => (await invokeNode("PreviewAny", { source })).ui?.text;

  it("shows any value as text", async () => {
    assert.deepEqual(await textOf("a fox"), ["a fox"]);
    assert.deepEqual(await textOf(7), ["7"]);
    assert.deepEqual(await textOf(true), ["True"]);
    assert.deepEqual(await textOf({ a: [1, 2] }), ['{\n    "a": [\n        1,\n        2\n    ]\n}']);
    assert.deepEqual(await textOf(Tensor.zeros([1, 2])), ["Tensor [1,2] float32"]);
  });

  it("is an output of a graph", async () => {
    const graph = {
      1: { class_type: "PrimitiveFloat", inputs: { value: 0.5 } },
      2: { class_type: "PreviewAny", inputs: { source: ["1", 0] } },
    };
    const texts: unknown[] = [];
    for await (const event of executeGraph(graph)) if (event.type === "node-done") texts.push(event.ui?.text);
    assert.deepEqual(texts, [undefined, ["0.5"]]);
  });
});

describe("StringConcatenate", () => {
  it("joins two texts by a third", async () => {
    const inputs = { string_a: "a fox", string_b: "in snow", delimiter: ", " };
    assert.deepEqual((await invokeNode("StringConcatenate", inputs)).result, ["a fox, in snow"]);
  });
});
