import assert from "node:assert/strict";
import { findT5, t5Part } from "#src/host/checkpoint/recognition/transformers/t5.js";
import { refuses } from "../../../../../helpers/errors.js";
import { headerOf, type Shapes, withKeys } from "../../../../../helpers/models/full-size.js";
import { fullSizeFlux } from "../../../../../helpers/models/golden-flux.js";

const { t5xxl, flux1_dev } = fullSizeFlux();
const partOf = (shapes: Shapes) => {
  const file = headerOf(shapes);
  return t5Part(file, findT5(file.weights) ?? assert.fail("no T5 encoder was found"));
};

describe("t5Part", () => {
  const { config } = partOf(t5xxl);

  it("reads the sizes of the full-size encoder, and takes every weight", () => {
    assert.deepEqual(config, { hidden: 4096, layers: 24, heads: 64, headSize: 64, mlp: 10_240, vocabulary: 32_128 });
    const table = "encoder.embed_tokens.weight";
    assert.deepEqual(
      [...partOf({ ...t5xxl, [table]: [32_128, 4096] }).weights.keys()].sort(),
      Object.keys(withKeys(t5xxl, (key) => (key === table ? undefined : key))).sort(),
    );
  });

  it("finds an encoder under any prefix and beside other parts", () => {
    for (const prefix of ["", "text_encoders.t5xxl.transformer.", "t5."]) {
      const shapes = { ...flux1_dev, ...withKeys(t5xxl, (key) => prefix + key), "decoder.block.0.weight": [1] };
      assert.deepEqual(partOf(shapes).config, config);
    }
    assert.equal(findT5(headerOf(flux1_dev).weights), undefined);
  });

  it("reads the token table under its other name", () => {
    const shapes = withKeys(t5xxl, (key) => (key === "shared.weight" ? "encoder.embed_tokens.weight" : key));
    const { weights } = partOf(shapes);
    assert.equal(weights.get("shared.weight")!.key, "encoder.embed_tokens.weight");
  });

  it("refuses relatives by name, and damaged files", async () => {
    const first = withKeys(t5xxl, (key) => key.replace("wi_0", "wi"));
    await refuses(() => partOf(first), "model.unsupported", /version 1\.1.*version 1\.0/);
    const bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    const each = { ...t5xxl, [bias.replace(".0.", ".1.")]: [32, 64] };
    await refuses(() => partOf(each), "model.unsupported", /UMT5/);
    await refuses(() => partOf({ ...t5xxl, [bias]: [64, 64] }), "model.unsupported", /32 buckets.*64/);
    await refuses(() => partOf({ ...t5xxl, [bias]: [32, 60] }), "model.invalid", /multiple of 60 heads.*4096/);
    await refuses(() => partOf({ ...t5xxl, "shared.weight": [1000, 4096] }), "model.unsupported", /32100 tokens.*1000/);
    const further = { ...t5xxl, "encoder.block.3.layer.0.SelfAttention.q.bias": [4096] };
    await refuses(() => partOf(further), "model.unsupported", /SelfAttention\.q\.bias/);
    const gap = withKeys(t5xxl, (key) => (key.startsWith("encoder.block.7.") ? undefined : key));
    await refuses(() => partOf(gap), "model.invalid", /"encoder\.block\.7\./);
  });
});
