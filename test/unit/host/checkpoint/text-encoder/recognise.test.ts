import assert from "node:assert/strict";
import {
  findTextEncoders,
  recogniseTextEncoders,
  textEncoderPart,
} from "#src/host/checkpoint/text-encoder/recognise.js";
import { refuses } from "../../../../helpers/errors.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { clipPart } from "../../../../helpers/models/recognised.js";

const { sd1, sd2, sdxl } = fullSizeShapes();
const encoder = (shapes: Shapes, prefix: string, to = ""): Shapes =>
  withKeys(shapes, (key) => (key.startsWith(prefix) ? to + key.slice(prefix.length) : undefined));
const L = encoder(sd1, "cond_stage_model.transformer.");
const H = encoder(sd2, "cond_stage_model.model.");
const G = encoder(sdxl, "conditioner.embedders.1.model.");

const recognised = (shapes: Shapes) => recogniseTextEncoders(headerOf(shapes)).map((text) => clipPart(text)!.config);

describe("textEncoderPart", () => {
  it("reads files of their own, under each prefix", () => {
    for (const prefix of ["", "text_encoders.clip_l.transformer.", "clip."]) {
      const shapes = withKeys(L, (key) => prefix + key);
      assert.deepEqual(
        recognised(shapes).map(({ name, layers }) => [name, layers]),
        [["l", 12]],
      );
    }
    const bare = withKeys(L, (key) => key.replace("text_model.", ""));
    for (const [shapes, name, layers, projection] of [
      [bare, "l", 12, undefined],
      [H, "h", 24, 1024],
      [G, "g", 32, 1280],
      [withKeys(G, (key) => `model.${key}`), "g", 32, 1280],
    ] as const) {
      const [config] = recognised(shapes);
      assert.deepEqual([config!.name, config!.layers, config!.projection?.size], [name, layers, projection]);
      assert.equal(config!.activation, name === "l" ? "quick-gelu" : "gelu");
    }
  });

  it("finds every encoder of a file, and none of pictures", () => {
    const both = { ...encoder(sd1, "cond_stage_model.", "a."), ...withKeys(G, (key) => `b.${key}`) };
    assert.deepEqual(
      recognised(both).map(({ name }) => name),
      ["l", "g"],
    );
    const pictures = withKeys(L, (key) => key.replace("text_model.", "vision_model."));
    const withoutTable = withKeys(pictures, (key) => (key.includes("token") ? undefined : key));
    assert.deepEqual(findTextEncoders(headerOf(withoutTable).weights), []);
  });

  it("knows files of diffusers that lack the last layer of SD 2's", () => {
    const layers = withKeys(encoder(sdxl, "conditioner.embedders.0.transformer."), (key) => key);
    const deep: Record<string, readonly number[]> = {};
    for (const [key, shape] of Object.entries(layers))
      for (let layer = 0; layer < 23; layer++) deep[key.replace(/layers\.\d+/, `layers.${layer}`)] = shape;
    const [config] = recognised(deep);
    assert.deepEqual([config!.name, config!.layers, config!.missing], ["h", 23, 1]);
  });

  it("reads the projection beside Hugging Face's keys, transposed", () => {
    const hf = withKeys(L, (key) => key);
    const file = headerOf({ ...hf, "text_projection.weight": [500, 768] });
    const { config, weights } = textEncoderPart(file, findTextEncoders(file.weights)[0]!, "g");
    assert.deepEqual(config.projection, { key: "text_projection.weight", transposed: true, size: 500 });
    assert.ok(weights.has("text_projection.weight"));
  });

  it("ignores positions of any kind, and refuses further layers", async () => {
    const key = "text_model.embeddings.position_ids";
    assert.equal(recognised({ ...L, [key]: [1, 77] }).length, 1);
    assert.equal(recognised({ ...L, [key]: [3] }).length, 1);
    const further = { ...L, "text_model.encoder.layers.3.adapter.weight": [1] };
    await refuses(() => recognised(further), "model.unsupported", /layers\.3\.adapter\.weight/);
  });

  it("refuses encoders of other models and damaged ones", async () => {
    const t5 = { "encoder.block.0.layer.0.SelfAttention.q.weight": [4096, 4096] };
    await refuses(() => recognised(t5), "model.unsupported", /received a text encoder \(T5\)/);
    const table = "text_model.embeddings.token_embedding.weight";
    await refuses(() => recognised({ ...L, [table]: [30000, 768] }), "model.unsupported", /49408 tokens.*30000/);
    const positions = "text_model.embeddings.position_embedding.weight";
    await refuses(() => recognised({ ...L, [positions]: [248, 768] }), "model.unsupported", /77 positions.*248/);
    await refuses(() => recognised({ ...L, [table]: [49408, 700] }), "model.invalid", /multiple of 64 channels.*700/);
    const bias = "text_model.encoder.layers.11.self_attn.q_proj.bias";
    await refuses(() => recognised({ ...L, [bias]: [64] }), "model.invalid", /layers\.11\.self_attn\.q_proj\.bias/);
    const block = withKeys(H, (key) => (key.startsWith("transformer.resblocks.7.") ? undefined : key));
    await refuses(() => recognised(block), "model.invalid", /"transformer\.resblocks\.7\./);
  });
});
