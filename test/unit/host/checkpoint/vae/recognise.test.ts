import assert from "node:assert/strict";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { diffusersVaeShapes } from "../../../../helpers/models/diffusers-vae.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { goldenNames, isWholeSet, unpackModel } from "../../../../helpers/models/golden.js";
import { fullSizeFlux } from "../../../../helpers/models/golden-flux.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

const PREFIX = "first_stage_model.";
const SHAPES = withKeys(fullSizeShapes().sd1, (key) => (key.startsWith(PREFIX) ? key.slice(PREFIX.length) : undefined));
const CONFIG = {
  family: "sd",
  channels: 128,
  multipliers: [1, 2, 4, 4],
  blocks: 2,
  encoderChannels: 128,
  latentChannels: 4,
  normalised: false,
  quantised: true,
  attention: 4,
  hasEncoder: true,
};
const partOf = (shapes: Shapes) => recogniseVae(headerOf(shapes)).part;

const { flux2_vae } = fullSizeFlux();

describe("recogniseVae", () => {
  const folder = temporaryFolder();

  it("reads the golden files in LDM's and in diffusers' names", async () => {
    const names = goldenNames("vae");
    assert.deepEqual(names, isWholeSet ? ["ext", "ext_diffusers"] : []);
    for (const name of names) {
      const attention = name === "ext" ? 4 : 2;
      const file = await weightFile(unpackModel(`vae/${name}`, folder()));
      const { config, weights } = recogniseVae(file).part;
      assert.deepEqual(config, { ...CONFIG, channels: 32, multipliers: [1, 1, 2, 2], attention });
      assert.equal(weights.size, file.weights.size);
    }
  });

  it("reads files under each prefix, with a decoder alone, and with layers of training beside it", () => {
    for (const prefix of ["", "first_stage_model.", "vae."])
      assert.deepEqual(partOf(withKeys(SHAPES, (key) => prefix + key)).config, CONFIG);
    const decoder = withKeys(SHAPES, (key) => (/^(encoder|quant_conv)\./.test(key) ? undefined : key));
    assert.deepEqual(partOf(decoder).config, { ...CONFIG, hasEncoder: false });
    assert.deepEqual(partOf({ ...SHAPES, "loss.logvar": [], "model_ema.decay": [] }).config, CONFIG);
  });

  it("reads linear attention, and its older names in diffusers' files", async () => {
    const linear = Object.fromEntries(
      Object.entries(SHAPES).map(([key, shape]) => [key, /attn_1\.\w+\.weight/.test(key) ? shape.slice(0, 2) : shape]),
    );
    assert.deepEqual(partOf(linear).config, { ...CONFIG, attention: 2 });
    const older = { to_q: "query", to_k: "key", to_v: "value", "to_out.0": "proj_attn" };
    const shapes = diffusersVaeShapes(SHAPES);
    assert.deepEqual(partOf(shapes).config, { ...CONFIG, attention: 2 });
    const renamed = withKeys(shapes, (key) =>
      Object.entries(older).reduce((name, [to, from]) => name.replace(`.${to}.`, `.${from}.`), key),
    );
    assert.ok("decoder.mid_block.attentions.0.proj_attn.bias" in renamed);
    assert.deepEqual(partOf(renamed).config, partOf(shapes).config);
  });

  it("reads those of 16 channels, which have no layer between latents and halves", () => {
    const { config, weights } = partOf(flowShapes("flux vae")) as ReturnType<typeof partOf>;
    assert.deepEqual(config, { ...CONFIG, latentChannels: 16, quantised: false });
    assert.equal(weights.size, 244);
  });

  it("reads those of Flux.2, whose latents are normalised, and a decoder narrower than the encoder", () => {
    const config = { ...CONFIG, latentChannels: 32, normalised: true };
    const read = (shapes: Shapes) => partOf(shapes) as ReturnType<typeof partOf>;
    assert.deepEqual(read(flux2_vae).config, config);
    // the count of batches is not a weight
    assert.equal(read(flux2_vae).weights.size, 250);
    const outside = withKeys(flux2_vae, (key) => key.replace(/^(?:en|de)coder\.(?=(?:post_)?quant_conv)/, ""));
    assert.ok("quant_conv.weight" in outside);
    assert.deepEqual(read(outside).config, config);
    assert.deepEqual(read(diffusersVaeShapes(outside)).config, { ...config, attention: 2 });
    const narrow = Object.entries(flux2_vae).map(([key, shape]) => {
      const isDecoder = key.startsWith("decoder.") && !key.includes("quant_conv");
      return [key, isDecoder ? shape.map((side) => (side >= 128 ? (side * 3) / 4 : side)) : shape] as const;
    });
    assert.deepEqual(read(Object.fromEntries(narrow)).config, { ...config, channels: 96 });
  });

  it("refuses other VAEs by name", async () => {
    const cases: [Shapes, RegExp][] = [
      [{ ...SHAPES, "decoder.conv_in.weight": [512, 32, 3, 3] }, /one with 32 latent channels/],
      [withKeys(flux2_vae, (key) => (key.startsWith("bn.") ? undefined : key)), /one with 32 latent channels/],
      [{ ...SHAPES, "decoder.conv_in.weight": [512, 16, 3, 3, 3] }, /videos/],
      [{ emb_params: [1, 768] }, /received a textual inversion/],
      [{ ...SHAPES, "decoder.up.4.block.0.conv1.weight": [128, 128, 3, 3] }, /with 5/],
      [{ ...SHAPES, "decoder.up.3.attn.0.q.weight": [512, 512, 1, 1] }, /unknown weight "decoder\.up\.3\.attn/],
    ];
    for (const [shapes, pattern] of cases) await refuses(() => partOf(shapes), "model.unsupported", pattern);
  });

  it("refuses damaged files with the key of the file", async () => {
    const diffusers = diffusersVaeShapes(SHAPES);
    const cases: [Shapes, RegExp][] = [
      [{ ...SHAPES, "decoder.norm_out.weight": [64] }, /"decoder\.norm_out\.weight" of shape \[128\], received \[64\]/],
      [{ ...SHAPES, "decoder.up.2.block.0.conv1.weight": [500, 512, 3, 3] }, /level 2/],
      [withKeys(SHAPES, (key) => (key === "quant_conv.bias" ? undefined : key)), /"quant_conv\.bias"/],
      [{ ...flux2_vae, "encoder.quant_conv.bias": [1] }, /"encoder\.quant_conv\.bias" of shape \[64\]/],
      [{ ...flux2_vae, "bn.running_var": [32] }, /"bn\.running_var" of shape \[128\], received \[32\]/],
      [{ ...flux2_vae, "encoder.conv_in.weight": [48, 3, 3, 3] }, /a multiple of 32 channels, received 48/],
      [
        { ...diffusers, "decoder.up_blocks.3.resnets.1.norm1.bias": [1] },
        /"decoder\.up_blocks\.3\.resnets\.1\.norm1\.bias" of shape \[128\]/,
      ],
      [
        { ...diffusers, "decoder.mid_block.attentions.0.to_out.0.bias": [1] },
        /"decoder\.mid_block\.attentions\.0\.to_out\.0\.bias"/,
      ],
    ];
    for (const [shapes, pattern] of cases) await refuses(() => partOf(shapes), "model.invalid", pattern);
  });
});
