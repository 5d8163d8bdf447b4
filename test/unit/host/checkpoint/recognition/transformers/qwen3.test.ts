import assert from "node:assert/strict";
import { recogniseTextEncoders } from "#src/host/checkpoint/recognition/text-encoder.js";
import { refuses } from "../../../../../helpers/errors.js";
import { flowShapes } from "../../../../../helpers/models/flow-shapes.js";
import { headerOf, type Shapes, withKeys } from "../../../../../helpers/models/full-size.js";

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
          [{ ...SHAPES, "model.layers.4.self_attn.q_proj.bias": [4096] }, /further weight/],
          [flowShapes("qwen2.5_vl_7b"), /received a language model/],
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
