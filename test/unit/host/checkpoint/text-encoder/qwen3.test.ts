import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { rotationTables } from "#src/host/checkpoint/networks/sinusoids.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { buildQwen3, type Qwen3Config } from "#src/host/checkpoint/text-encoder/qwen3.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/text-encoder/recognise.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { type Feeds, graphSession } from "../../../../helpers/models/session.js";

const CONFIG: Qwen3Config = {
  version: "3",
  hidden: 32,
  layers: 4,
  heads: 4,
  groups: 2,
  headSize: 16,
  mlp: 96,
  vocabulary: 151_936,
};
const THETA = 1e6;
const MASKED = -3.4028234663852886e38;
const TOLERANCE = 1e-5;
const PLAIN: Target = {
  attention: "plain",
  largestHead: 256,
  matMul: "transposed",
  convChannels: "fours",
  halfTypes: [],
};

describe("buildQwen3", () => {
  const folder = temporaryFolder();
  const { cases, tensor } = flowLayers("qwen3");

  for (const [form, target] of [
    ["fused", CPU_TARGET],
    ["plain", PLAIN],
  ] as const)
    it(`computes what the reference does, after every layer too, ${form}`, async () => {
      const weights = await flowWeights("text_encoders/qwen_3_tiny", folder());
      const graph = new OnnxGraph("qwen3", target);
      const traced: string[] = [];
      buildQwen3(networkOf(graph, weights), CONFIG, (name, value) => {
        traced.push(name);
        graph.output(value, name, "float", ["B", "S", CONFIG.hidden]);
      });
      assert.deepEqual(traced, ["layers.0", "layers.1", "layers.2"]);
      const session = await graphSession(graph.encode({ overridable: false }));
      for (const { ids, cond, after = {}, text } of cases) {
        const outputs = await session.run(feedsOf(ids));
        const rows = (value: Tensor) => Tensor.from(value.data, value.shape.slice(-2));
        assert.ok(layerError(rows(outputs.cond!), rows(tensor(cond))) < TOLERANCE, text);
        for (const name of traced)
          if (after[name] !== undefined)
            assert.ok(layerError(rows(outputs[name]!), rows(tensor(after[name]))) < TOLERANCE, name);
      }
      await session.release();
    });
});

function feedsOf(ids: readonly number[]): Feeds {
  const { length } = ids;
  const mask = Tensor.zeros([1, 1, length, length]);
  for (let row = 0; row < length; row++) mask.data.fill(MASKED, row * length + row + 1, (row + 1) * length);
  const { cos, sin } = rotationTables(
    ids.map((_, index) => [index]),
    [CONFIG.headSize],
    THETA,
  );
  return { tokens: { int64: ids, shape: [1, length] }, mask, text_cos: cos, text_sin: sin };
}

const SHAPES = flowShapes("qwen3_4b");
const recognised = (shapes: Shapes) => recogniseTextEncoders(headerOf(shapes));

describe("qwen3Part", () => {
  it("leaves the last layer and its norm to the file", () => {
    for (const prefix of ["", "text_encoders.qwen3_4b.transformer."]) {
      const [{ kind, part }] = recognised(withKeys(SHAPES, (key) => prefix + key)) as [
        ReturnType<typeof recognised>[number],
      ];
      assert.equal(kind, "qwen3");
      assert.equal(part.weights.size, 1 + 35 * 11);
      assert.ok(!part.weights.has("model.layers.35.mlp.up_proj.weight"));
    }
  });

  it("refuses other language models by name", () =>
    Promise.all(
      (
        [
          [{ ...SHAPES, "model.layers.0.pre_feedforward_layernorm.weight": [2560] }, /received a Gemma model/],
          [{ ...SHAPES, "model.embed_tokens.weight": [32000, 2560] }, /with 151669 tokens, received one with 32000/],
          [{ ...SHAPES, "model.layers.4.self_attn.q_proj.bias": [4096] }, /unknown weight/],
        ] as [Shapes, RegExp][]
      ).map(([shapes, pattern]) => refuses(() => recognised(shapes), "model.unsupported", pattern)),
    ));

  it("refuses damaged files with the key of the file", () =>
    Promise.all(
      (
        [
          [withKeys(SHAPES, (key) => (key.includes("layers.3.mlp.up") ? undefined : key)), /layers\.3\.mlp\.up_proj/],
          [
            { ...SHAPES, "model.layers.0.self_attn.k_proj.weight": [640, 2560] },
            /divide 32 heads of queries, received 5/,
          ],
          [{ ...SHAPES, "model.layers.0.self_attn.q_norm.weight": [96] }, /numbers that divide 4096, received 96/],
        ] as [Shapes, RegExp][]
      ).map(([shapes, pattern]) => refuses(() => recognised(shapes), "model.invalid", pattern)),
    ));
});
