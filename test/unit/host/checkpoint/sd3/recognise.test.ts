import assert from "node:assert/strict";
import { requireCheckpoint } from "#src/host/checkpoint/families/recognise.js";
import { type Place, placesByName } from "#src/host/checkpoint/lora/places.js";
import { sd3Places } from "#src/host/checkpoint/sd3/model.js";
import { findSd3, sd3Part } from "#src/host/checkpoint/sd3/recognise.js";
import { refuses } from "../../../../helpers/errors.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { fullSizeFlux } from "../../../../helpers/models/golden-flux.js";
import { weightsOf } from "../../../../helpers/models/lora.js";

const { sd3_medium, sd35_medium, sd35_large, t5xxl, ae } = fullSizeFlux();
const partOf = (shapes: Shapes) => {
  const file = headerOf(shapes);
  return sd3Part(file, findSd3(file.weights) ?? assert.fail("no model of SD 3 was found"));
};

describe("sd3Part", () => {
  const medium = {
    channels: 16,
    width: 1536,
    heads: 24,
    mlp: 6144,
    contextWidth: 4096,
    pooledWidth: 2048,
    side: 192,
    blocks: 24,
    selfAttending: 0,
    hasHeadNorms: false,
  };

  it("reads the sizes of the full-size models, and takes every weight", () => {
    assert.deepEqual(partOf(sd3_medium).config, medium);
    const newer = { ...medium, side: 384, selfAttending: 13, hasHeadNorms: true };
    assert.deepEqual(partOf(sd35_medium).config, newer);
    const large = { width: 2432, heads: 38, mlp: 9728, side: 192, blocks: 38, selfAttending: 0 };
    assert.deepEqual(partOf(sd35_large).config, { ...newer, ...large });
    for (const shapes of [sd3_medium, sd35_medium, sd35_large])
      assert.deepEqual([...partOf(shapes).weights.keys()].sort(), Object.keys(shapes).sort());
  });

  it("finds the parts of a whole checkpoint", () => {
    const whole = {
      ...withKeys(sd3_medium, (key) => `model.diffusion_model.${key}`),
      ...withKeys(ae, (key) => `first_stage_model.${key}`),
      ...withKeys(t5xxl, (key) => `text_encoders.t5xxl.transformer.${key}`),
    };
    const parts = requireCheckpoint(headerOf(whole));
    assert.deepEqual([parts.family, parts.words, parts.clipType, parts.encoderCount], ["sd3", "SD 3", "sd3", 1]);
    assert.deepEqual([parts.textEncoders[0]!.kind, parts.vae!.config.latentChannels, parts.ignored], ["t5", 16, 0]);
    const words = [sd35_medium, sd35_large].map((shapes) => requireCheckpoint(headerOf(shapes)).words);
    assert.deepEqual(words, ["SD 3.5 medium", "SD 3.5 large"]);
  });

  it("refuses other latents, further weights and damaged files", async () => {
    const other = { ...sd3_medium, "x_embedder.proj.weight": [1536, 4, 2, 2] };
    await refuses(() => partOf(other), "model.unsupported", /with 16 latent channels, received one that takes 4/);
    const further = { ...sd3_medium, "joint_blocks.3.adapter.weight": [1] };
    await refuses(() => partOf(further), "model.unsupported", /joint_blocks\.3\.adapter\.weight/);
    const oblong = { ...sd3_medium, pos_embed: [1, 36_865, 1536] };
    await refuses(() => partOf(oblong), "model.invalid", /a square table of positions, received 1 x 36865 rows/);
    const narrow = { ...sd3_medium, pos_embed: [1, 36_864, 1000] };
    await refuses(() => partOf(narrow), "model.invalid", /"pos_embed" of shape \[36864, 1536\]/);
    const gap = withKeys(sd35_large, (key) => (key.startsWith("joint_blocks.7.x_block.") ? undefined : key));
    await refuses(() => partOf(gap), "model.invalid", /"joint_blocks\.7\.x_block/);
    const later = { ...sd3_medium, "joint_blocks.5.x_block.attn2.qkv.weight": [4608, 1536] };
    await refuses(() => partOf(later), "model.invalid", /joint_blocks\.0\.x_block/);
    const absent = withKeys(sd3_medium, (key) => (key === "pos_embed" ? undefined : key));
    await refuses(() => partOf(absent), "model.invalid", /"pos_embed" of 3 sides, received none/);
  });
});

const H = 1536;
const block = "joint_blocks.7.";
const NAMES: Record<string, string> = {
  lora_unet_joint_blocks_7_x_block_attn_qkv: `${block}x_block.attn.qkv.weight`,
  "diffusion_model.joint_blocks.7.context_block.mlp.fc1": `${block}context_block.mlp.fc1.weight`,
  "transformer.transformer_blocks.7.attn.to_q": `${block}x_block.attn.qkv.weight 0-${H}`,
  "transformer.transformer_blocks.7.attn.add_v_proj": `${block}context_block.attn.qkv.weight ${2 * H}-${3 * H}`,
  "transformer.transformer_blocks.7.attn2.to_k": `${block}x_block.attn2.qkv.weight ${H}-${2 * H}`,
  "transformer.transformer_blocks.7.attn2.to_out.0": `${block}x_block.attn2.proj.weight`,
  "transformer.transformer_blocks.7.attn.to_add_out": `${block}context_block.attn.proj.weight`,
  "transformer.transformer_blocks.7.attn.norm_added_k": `${block}context_block.attn.ln_k.weight`,
  "transformer.transformer_blocks.7.ff.net.0.proj": `${block}x_block.mlp.fc1.weight`,
  "transformer.transformer_blocks.7.ff_context.net.2": `${block}context_block.mlp.fc2.weight`,
  "transformer.transformer_blocks.7.norm1.linear": `${block}x_block.adaLN_modulation.1.weight`,
  "transformer.transformer_blocks.7.norm1_context.linear": `${block}context_block.adaLN_modulation.1.weight`,
  "transformer.transformer_blocks.23.norm1_context.linear": `joint_blocks.23.context_block.adaLN_modulation.1.weight ${H}-${2 * H} 0-${H}`,
  "transformer.norm_out.linear": `final_layer.adaLN_modulation.1.weight ${H}-${2 * H} 0-${H}`,
  "transformer.time_text_embed.text_embedder.linear_2": "y_embedder.mlp.2.weight",
  "transformer.pos_embed.proj": "x_embedder.proj.weight",
  "transformer.proj_out": "final_layer.linear.weight",
};

describe("names of SD 3's layers in LoRA files", () => {
  const target = { places: sd3Places, weights: weightsOf(sd35_medium) };
  const shown = ({ key, rows }: Place): string => [key, ...(rows ?? []).map((range) => range.join("-"))].join(" ");

  it("each style has its own, of rows if layers are one weight", () => {
    const places = placesByName(target);
    for (const [name, place] of Object.entries(NAMES))
      assert.equal(shown(places.get(name)?.weight ?? assert.fail(name)), place, name);
  });

  it("every weight and bias has names in both styles", () => {
    for (const prefix of ["diffusion_model.joint", "transformer.transformer_blocks."]) {
      const named = new Set<string>();
      for (const [name, { weight, bias }] of placesByName(target))
        if (name.startsWith(prefix)) for (const place of [weight, bias]) if (place) named.add(place.key);
      const inBlocks = Object.keys(sd35_medium).filter((key) => key.startsWith("joint_blocks."));
      assert.deepEqual([...named].sort(), inBlocks.sort());
    }
  });
});
