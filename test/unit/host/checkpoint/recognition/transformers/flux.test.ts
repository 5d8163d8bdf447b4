import assert from "node:assert/strict";
import { findFlux, fluxPart } from "#src/host/checkpoint/recognition/transformers/flux.js";
import { refuses } from "../../../../../helpers/errors.js";
import { headerOf, type Shapes, withKeys } from "../../../../../helpers/models/full-size.js";
import { fullSizeFlux } from "../../../../../helpers/models/golden-flux.js";

const { flux1_dev, flux1_schnell, flux1_fill, flux1_control, flux2_dev, ae } = fullSizeFlux();
const partOf = (shapes: Shapes) => {
  const file = headerOf(shapes);
  return fluxPart(file, findFlux(file) ?? assert.fail("no Flux model was found"));
};
const configOf = (shapes: Shapes) => partOf(shapes).config;

describe("fluxPart", () => {
  const dev = configOf(flux1_dev);

  it("reads the sizes of the full-size models, and takes every weight", () => {
    assert.deepEqual(dev, {
      ...{ inputs: 64, outputs: 64, width: 3072, heads: 24, headSize: 128, mlp: 12_288, norms: "scale" },
      ...{ contextWidth: 4096, pooledWidth: 768, doubleBlocks: 19, singleBlocks: 38, hasGuidance: true },
    });
    assert.deepEqual(configOf(flux1_schnell), { ...dev, hasGuidance: false });
    assert.deepEqual(configOf(flux1_fill), { ...dev, inputs: 384 });
    assert.deepEqual(configOf(flux1_control), { ...dev, inputs: 128 });
    for (const shapes of [flux1_dev, flux1_schnell, flux1_fill, flux1_control])
      assert.deepEqual([...partOf(shapes).weights.keys()].sort(), Object.keys(shapes).sort());
  });

  it("finds a model under each prefix and beside other parts, with norms of either name", () => {
    for (const prefix of ["model.diffusion_model.", "diffusion_model.", "model.", "transformer.", ""]) {
      const shapes = withKeys(flux1_dev, (key) => prefix + key);
      assert.equal(findFlux(headerOf(shapes)), prefix);
      assert.deepEqual(configOf({ ...shapes, ...withKeys(ae, (key) => `vae.${key}`) }), dev);
    }
    const newer = withKeys(flux1_dev, (key) => key.replace(/\.scale$/, ".weight"));
    assert.deepEqual(configOf(newer), { ...dev, norms: "weight" });
    assert.equal(findFlux(headerOf(ae)), undefined);
  });

  it("refuses relatives by name", async () => {
    const first = "double_blocks.0.img_mlp.gate_proj.weight";
    for (const [key, name] of [
      ["txt_in.individual_token_refiner.blocks.0.norm1.weight", /Hunyuan Video/],
      ["latent_in.weight", /Hunyuan 3D/],
      ["nerf_blocks.0.norm.scale", /Chroma Radiance/],
      ["distilled_guidance_layer.norms.0.scale", /a Chroma model/],
      [first, /Ovis/],
    ] as const) {
      await refuses(() => partOf({ ...flux1_dev, [key]: [8] }), "model.unsupported", name);
      const inside = withKeys({ ...flux1_dev, [key]: [8] }, (own) => `model.diffusion_model.${own}`);
      await refuses(() => partOf(inside), "model.unsupported", name);
    }
    await refuses(() => partOf(flux2_dev), "model.unsupported", /Flux\.2/);
    const longCat = { ...flux1_dev, "txt_in.weight": [3072, 3584] };
    await refuses(() => partOf(longCat), "model.unsupported", /LongCat/);
  });

  it("refuses other patches, further weights and damaged files", async () => {
    const takes96 = { ...flux1_dev, "img_in.weight": [3072, 96] };
    await refuses(() => partOf(takes96), "model.unsupported", /64, 128, 384 numbers.*takes 96 and makes 64/);
    const makes48 = { ...flux1_dev, "final_layer.linear.weight": [48, 3072] };
    await refuses(() => partOf(makes48), "model.unsupported", /takes 64 and makes 48/);
    const further = { ...flux1_dev, "single_blocks.3.adapter.weight": [1] };
    await refuses(() => partOf(further), "model.unsupported", /single_blocks\.3\.adapter\.weight/);
    const norm = "double_blocks.0.img_attn.norm.key_norm.scale";
    await refuses(() => partOf({ ...flux1_dev, [norm]: [48] }), "model.invalid", /multiple of 32.*3072, received 48/);
    await refuses(() => partOf({ ...flux1_dev, [norm]: [160] }), "model.invalid", /multiple of 32.*received 160/);
    const gap = withKeys(flux1_dev, (key) => (key.startsWith("double_blocks.7.") ? undefined : key));
    await refuses(() => partOf(gap), "model.invalid", /"double_blocks\.7\./);
    const deep = { ...flux1_dev, "single_blocks.9999.linear1.weight": [1, 1] };
    await refuses(() => partOf(deep), "model.invalid", /at most 256 blocks/);
    const lone = { [norm]: [128] };
    await refuses(() => partOf(lone), "model.invalid", /"img_in\.weight".*received none/);
  });
});
