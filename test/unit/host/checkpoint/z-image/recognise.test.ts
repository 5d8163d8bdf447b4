import assert from "node:assert/strict";
import { recogniseCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { placedWeights } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../helpers/errors.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";

const SHAPES = flowShapes("z_image");
const recognised = (shapes: Shapes) =>
  recogniseCheckpoint(headerOf(shapes), () => Promise.reject(new Error("no values are needed")));
const CONFIG = {
  channels: 16,
  width: 3840,
  heads: 30,
  headSize: 128,
  captionWidth: 2560,
  layers: 30,
  noiseRefiners: 2,
  contextRefiners: 2,
  mlp: 10240,
  timeWidth: 256,
  timeHidden: 1024,
};

/** The same weights under diffusers' names. */
function diffusers(shapes: Shapes): Shapes {
  const all: Record<string, readonly number[]> = {};
  for (const [key, shape] of Object.entries(shapes)) {
    const name = key
      .replace(/\.(q|k)_norm\./, ".norm_$1.")
      .replace("attention.out.", "attention.to_out.0.")
      .replace(/^x_embedder\./, "all_x_embedder.2-1.")
      .replace(/^final_layer\./, "all_final_layer.2-1.");
    if (!key.includes("attention.qkv")) all[name] = shape;
    else for (const part of ["q", "k", "v"]) all[key.replace("qkv", `to_${part}`)] = [shape[0]! / 3, ...shape.slice(1)];
  }
  return all;
}

describe("zImagePart", () => {
  it("reads every size of the full-size file, under each prefix and in both layouts", async () => {
    for (const prefix of ["", "model.diffusion_model.", "diffusion_model.", "net."])
      for (const shapes of [SHAPES, diffusers(SHAPES)]) {
        const { family, network, sampling, textEncoders, vae, ignored } = await recognised(
          withKeys(shapes, (key) => prefix + key),
        );
        assert.equal(family, "z-image");
        assert.deepEqual(network.part.config, CONFIG);
        assert.equal(placedWeights(network.part.weights).length, Object.keys(shapes).length);
        assert.deepEqual([sampling.prediction, sampling.latentFormat], ["flow", "Flux"]);
        assert.deepEqual([textEncoders.length, vae, ignored], [0, undefined, 0]);
      }
  });

  it("finds text encoder and VAE in one file with it", async () => {
    const { textEncoders, vae, ignored } = await recognised({
      ...withKeys(SHAPES, (key) => `model.diffusion_model.${key}`),
      ...withKeys(flowShapes("qwen3_4b"), (key) => `text_encoders.qwen3_4b.transformer.${key}`),
      ...withKeys(flowShapes("flux vae"), (key) => `vae.${key}`),
    });
    const [encoder] = textEncoders;
    assert.deepEqual(encoder!.part.config, {
      version: "3",
      hidden: 2560,
      layers: 36,
      heads: 32,
      groups: 8,
      headSize: 128,
      mlp: 9728,
      vocabulary: 151936,
    });
    assert.deepEqual([vae!.config.latentChannels, vae!.config.quantised], [16, false]);
    // the last layer of the text encoder, and its norm
    assert.equal(ignored, 12);
  });

  it("refuses relatives by name", async () => {
    const cases: [Shapes, RegExp][] = [
      [{ ...SHAPES, "cap_embedder.1.weight": [2304, 2304] }, /received a Lumina 2 model/],
      [{ ...SHAPES, "siglip_embedder.0.weight": [1152] }, /received a Z-Image Omni model/],
      [{ ...SHAPES, "dec_net.cond_embed.weight": [1, 1] }, /received a Z-Image Pixel model/],
      [{ ...SHAPES, "x_embedder.weight": [3840, 128] }, /with 16 latent channels, received one with 32/],
      [{ ...SHAPES, "layers.3.attention.extra.weight": [1] }, /unknown weight "layers\.3\.attention\.extra\.weight"/],
    ];
    for (const [shapes, pattern] of cases) await refuses(recognised(shapes), "model.unsupported", pattern);
  });

  it("refuses damaged files with the key of the file", async () => {
    const cases: [Shapes, RegExp][] = [
      [withKeys(SHAPES, (key) => (key === "layers.7.ffn_norm1.weight" ? undefined : key)), /layers\.7\.ffn_norm1/],
      [{ ...SHAPES, "noise_refiner.0.attention.k_norm.weight": [72] }, /a multiple of 16 numbers that divide 3840/],
      [withKeys(SHAPES, (key) => (key.startsWith("layers.") ? undefined : key)), /a transformer with layers/],
      [{ ...SHAPES, "layers.300.attention_norm1.weight": [3840] }, /at most 256 blocks/],
      [{ ...SHAPES, "t_embedder.mlp.0.weight": [1024, 128] }, /"t_embedder\.mlp\.0\.weight" of shape \[1024, 256\]/],
    ];
    for (const [shapes, pattern] of cases) await refuses(recognised(shapes), "model.invalid", pattern);
    const all = diffusers(SHAPES);
    for (const key of [
      "layers.2.attention.to_q.weight",
      "layers.2.attention.to_out.0.weight",
      "layers.2.attention.norm_q.weight",
      "all_x_embedder.2-1.weight",
      "all_final_layer.2-1.linear.weight",
    ]) {
      const without = withKeys(all, (each) => (each === key ? undefined : each));
      const error = await refuses(recognised(without), "model.invalid");
      assert.ok(error.message.includes(JSON.stringify(key)), error.message);
    }
    const both = { ...all, "layers.2.attention.qkv.weight": SHAPES["layers.2.attention.qkv.weight"]! };
    await refuses(recognised(both), "model.unsupported", /unknown weight "layers\.2\.attention\.to_q\.weight"/);
  });
});
