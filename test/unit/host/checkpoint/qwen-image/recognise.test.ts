import assert from "node:assert/strict";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { placesByName } from "#src/host/checkpoint/lora/places.js";
import { BuiltQwenImage } from "#src/host/checkpoint/qwen-image/model.js";
import type { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import type { Runtime } from "#src/host/checkpoint/session/runtime.js";
import { refuses } from "../../../../helpers/errors.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";

const SHAPES = flowShapes("qwen_image");
const recognised = (shapes: Shapes) =>
  recogniseCheckpoint(headerOf(shapes), () => Promise.reject(new Error("no values are needed")));
const CONFIG = {
  inputs: 64,
  width: 3072,
  heads: 24,
  headSize: 128,
  mlp: 12_288,
  contextWidth: 3584,
  blocks: 60,
  hasReferenceTime: false,
};

describe("qwenImagePart", () => {
  it("reads every size of the full-size file, under each prefix", async () => {
    for (const prefix of ["", "model.diffusion_model.", "diffusion_model.", "net."]) {
      const { family, words, network, sampling, textEncoders, vae, ignored } = await recognised(
        withKeys(SHAPES, (key) => prefix + key),
      );
      assert.deepEqual([family, words], ["qwen-image", "Qwen-Image"]);
      assert.deepEqual(network.part.config, CONFIG);
      assert.equal(network.part.weights.size, Object.keys(SHAPES).length);
      assert.deepEqual([sampling.schedule, sampling.latentFormat], ["qwen-image", "Wan21"]);
      assert.deepEqual([textEncoders.length, vae, ignored], [0, undefined, 0]);
    }
  });

  it("knows Edit 2511 by its mark", async () => {
    const prefix = "model.diffusion_model.";
    const marked = withKeys({ ...SHAPES, __index_timestep_zero__: [0] }, (key) => prefix + key);
    const { words, network } = await recognised(marked);
    assert.equal(words, "Qwen-Image-Edit 2511");
    assert.deepEqual(network.part.config, { ...CONFIG, hasReferenceTime: true });
  });

  it("finds text encoder, vision tower and VAE in one file with it", async () => {
    const { textEncoders, vae, ignored } = await recognised({
      ...withKeys(SHAPES, (key) => `model.diffusion_model.${key}`),
      ...withKeys(flowShapes("qwen2.5_vl_7b"), (key) => `text_encoders.qwen25_7b.transformer.${key}`),
      ...withKeys(flowShapes("wan vae"), (key) => `vae.${key}`),
    });
    const [encoder] = textEncoders;
    assert.ok(encoder?.kind === "qwen2.5-vl" && encoder.tower !== undefined);
    assert.equal(vae!.config.family, "wan");
    // four layers between frames, each with an offset, and the table of words backwards
    assert.equal(ignored, 2 * 4 + ("lm_head.weight" in flowShapes("qwen2.5_vl_7b") ? 1 : 0));
  });

  it("has its layers under every name of LoRA files", () => {
    const layer = "transformer_blocks.7.attn.to_out.0";
    const part = { label: "Qwen-Image", config: CONFIG, weights: headerOf(SHAPES).weights };
    const network = new BuiltQwenImage({} as Runtime, part as unknown as ModelPart<typeof CONFIG>);
    const places = placesByName(network.target);
    const own = [layer, `diffusion_model.${layer}`, `transformer.${layer}`];
    const flat = layer.replaceAll(".", "_");
    for (const name of [...own, `lora_unet_${flat}`, `lycoris_${flat}`])
      assert.equal(places.get(name)?.weight?.key, `${layer}.weight`, name);
  });

  it("refuses relatives by name", async () => {
    const cases: [Shapes, RegExp][] = [
      [{ ...SHAPES, "time_text_embed.addition_t_embedding.weight": [2, 3072] }, /received a Qwen-Image Layered model/],
      [{ ...SHAPES, "controlnet_blocks.0.weight": [3072, 3072] }, /received a ControlNet of Qwen-Image \(InstantX\)/],
      [{ ...SHAPES, "img_in.weight": [3072, 128] }, /takes 64 numbers of a patch, received one that takes 128/],
      [{ ...SHAPES, "transformer_blocks.3.attn.extra.weight": [1] }, /unknown weight "transformer_blocks\.3\.attn/],
    ];
    for (const [shapes, pattern] of cases) await refuses(recognised(shapes), "model.unsupported", pattern);
  });

  it("refuses damaged files with the key of the file", async () => {
    const cases: [Shapes, RegExp][] = [
      [withKeys(SHAPES, (key) => (key === "norm_out.linear.bias" ? undefined : key)), /"norm_out\.linear\.bias"/],
      [{ ...SHAPES, "transformer_blocks.0.attn.norm_q.weight": [72] }, /a multiple of 32 numbers that divide 3072/],
      [{ ...SHAPES, "transformer_blocks.300.img_mod.1.weight": [1, 1] }, /at most 256 blocks/],
      [
        { ...SHAPES, "transformer_blocks.5.txt_mlp.net.2.weight": [3072, 5] },
        /"transformer_blocks\.5\.txt_mlp\.net\.2/,
      ],
    ];
    for (const [shapes, pattern] of cases) await refuses(recognised(shapes), "model.invalid", pattern);
  });
});
