import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Conditioning, type Host, type Model, randn } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { findFlux, fluxPart } from "#src/host/checkpoint/flux/recognise.js";
import { readSafetensors } from "#src/io/safetensors.js";
import { refuses } from "../../../../helpers/errors.js";
import { suiteFolder } from "../../../../helpers/folders.js";
import { diffusersFlux, diffusersFlux2 } from "../../../../helpers/models/diffusers-flux.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { fullSizeFlux, unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { ownCacheFolder } from "../../../../helpers/models/models-folder.js";
import { writeQuantised } from "../../../../helpers/models/quantised-file.js";
import { type RawTensor, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

const { flux1_dev, flux1_schnell, flux1_fill, flux1_control, flux2_dev, flux2_klein_4b, flux2_klein_9b, ae } =
  fullSizeFlux();
const partOf = (shapes: Shapes) => {
  const file = headerOf(shapes);
  return fluxPart(file, findFlux(file.weights) ?? assert.fail("no Flux model was found"));
};
const configOf = (shapes: Shapes) => partOf(shapes).config;

describe("fluxPart", () => {
  const dev = configOf(flux1_dev);

  it("reads the sizes of the full-size models, and takes every weight", () => {
    assert.deepEqual(dev, {
      kind: "flux",
      inputs: 64,
      outputs: 64,
      width: 3072,
      heads: 24,
      headSize: 128,
      mlp: 12_288,
      norms: "scale",
      contextWidth: 4096,
      pooledWidth: 768,
      doubleBlocks: 19,
      singleBlocks: 38,
      hasGuidance: true,
    });
    assert.deepEqual(configOf(flux1_schnell), { ...dev, hasGuidance: false });
    assert.deepEqual(configOf(flux1_fill), { ...dev, inputs: 384 });
    assert.deepEqual(configOf(flux1_control), { ...dev, inputs: 128 });
    for (const shapes of [flux1_dev, flux1_schnell, flux1_fill, flux1_control])
      assert.deepEqual([...partOf(shapes).weights.keys()].sort(), Object.keys(shapes).sort());
  });

  it("reads the sizes of Flux.2's models, and takes every weight", () => {
    const klein = {
      ...dev,
      kind: "flux2",
      inputs: 128,
      outputs: 128,
      mlp: 9216,
      contextWidth: 7680,
      pooledWidth: 0,
      doubleBlocks: 5,
      singleBlocks: 20,
      hasGuidance: false,
    };
    assert.deepEqual(configOf(flux2_klein_4b), klein);
    const of9b = { width: 4096, heads: 32, mlp: 12_288, contextWidth: 12_288, doubleBlocks: 8, singleBlocks: 24 };
    assert.deepEqual(configOf(flux2_klein_9b), { ...klein, ...of9b });
    const ofDev = { width: 6144, heads: 48, mlp: 18_432, contextWidth: 15_360, doubleBlocks: 8, singleBlocks: 48 };
    assert.deepEqual(configOf(flux2_dev), { ...klein, ...ofDev, hasGuidance: true });
    for (const shapes of [flux2_dev, flux2_klein_4b, flux2_klein_9b])
      assert.deepEqual([...partOf(shapes).weights.keys()].sort(), Object.keys(shapes).sort());
  });

  it("refuses damaged files of Flux.2", async () => {
    const takes64 = { ...flux2_dev, "img_in.weight": [6144, 64] };
    await refuses(() => partOf(takes64), "model.unsupported", /a Flux\.2 model that takes 128 numbers.*takes 64/);
    const gap = withKeys(flux2_dev, (key) => (key.startsWith("single_stream_modulation.") ? undefined : key));
    await refuses(
      () => partOf(gap),
      "model.invalid",
      /"single_stream_modulation\.lin\.weight" of shape \[18432, 6144\]/,
    );
    const biased = { ...flux2_dev, "img_in.bias": [6144] };
    await refuses(() => partOf(biased), "model.unsupported", /a Flux\.2 model, received one .* "img_in\.bias"/);
  });

  it("finds a model under each prefix and beside other parts, with norms of either name", () => {
    for (const prefix of ["model.diffusion_model.", "diffusion_model.", "model.", "transformer.", ""]) {
      const shapes = withKeys(flux1_dev, (key) => prefix + key);
      assert.equal(findFlux(headerOf(shapes).weights), prefix);
      assert.deepEqual(configOf({ ...shapes, ...withKeys(ae, (key) => `vae.${key}`) }), dev);
    }
    const newer = withKeys(flux1_dev, (key) => key.replace(/\.scale$/, ".weight"));
    assert.deepEqual(configOf(newer), { ...dev, norms: "weight" });
    assert.equal(findFlux(headerOf(ae).weights), undefined);
  });

  it("refuses relatives by name", async () => {
    const first = "double_blocks.0.img_mlp.gate_proj.weight";
    for (const [key, name] of [
      ["txt_in.individual_token_refiner.blocks.0.norm1.weight", /Hunyuan Video/],
      ["latent_in.weight", /Hunyuan 3D/],
      ["nerf_blocks.0.norm.scale", /Chroma Radiance/],
      [first, /Ovis/],
    ] as const) {
      await refuses(() => partOf({ ...flux1_dev, [key]: [8] }), "model.unsupported", name);
      const inside = withKeys({ ...flux1_dev, [key]: [8] }, (own) => `model.diffusion_model.${own}`);
      await refuses(() => partOf(inside), "model.unsupported", name);
    }
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

const WIDTH = 96;

describe("Flux transformers in the layout of diffusers", () => {
  const folder = suiteFolder();
  ownCacheFolder(folder);
  let host: Host;
  let tensors: Record<string, RawTensor>;
  const file = (name: string): string => join(folder(), "diffusion_models", name);
  before(() => {
    unpackFlux(folder());
    const own = readSafetensors(readFileSync(file("flux_dev.safetensors"))).tensors;
    tensors = diffusersFlux(Object.fromEntries(own), WIDTH);
    writeWeights(file("diffusers.safetensors"), tensors);
    for (const [name, source] of [
      ["own", "flux_dev"],
      ["other", "diffusers"],
    ] as const)
      writeQuantised(
        file(`${source}.safetensors`),
        { gguf: file(`${name}.gguf`), expanded: file(`${name}-expanded.safetensors`) },
        { type: () => "Q8_0", architecture: "flux" },
      );
    host = createCheckpointHost({ models: folder() });
  });
  after(() => host.close?.());

  const load = (name: string): Promise<Model> => host.loadFile!("diffusion_models", name) as Promise<Model>;

  async function predicted(model: Model) {
    const cond = [[randn([1, 5, 48], { seed: 1 }), { guidance: 4 }]] as unknown as Conditioning;
    return model.predict!(randn([1, 16, 4, 6], { seed: 2 }), 0.7, cond);
  }

  it("have every weight of the original layout, and predict the same", async () => {
    const [own, other] = [
      await weightFile(file("flux_dev.safetensors")),
      await weightFile(file("diffusers.safetensors")),
    ];
    const keys = [...fluxPart(own, "").weights.keys()].map((key) => key.replace(/\.scale$/, ".weight"));
    assert.deepEqual([...fluxPart(other, "").weights.keys()].sort(), keys.sort());
    const expected = await predicted(await load("flux_dev.safetensors"));
    assert.deepEqual(await predicted(await load("diffusers.safetensors")), expected);
  });

  for (const name of ["flux_kohya", "flux_diffusers", "flux_control"])
    it(`take the LoRA ${name} as the original layout does`, async () => {
      const lora = await host.loadFile!("loras", `${name}.safetensors`);
      const [expected, actual] = await Promise.all(
        ["flux_dev.safetensors", "diffusers.safetensors"].map(async (file) => {
          const [changed] = lora.apply(await load(file), undefined, { model: 1, clip: 1 });
          return predicted(changed);
        }),
      );
      assert.ok(layerError(actual!, expected!) < 1e-6);
      assert.ok(layerError(actual!, await predicted(await load("flux_dev.safetensors"))) > 1e-4);
    });

  it("compute the same where they are packed", async () => {
    const expected = await predicted(await load("own.gguf"));
    assert.ok(layerError(await predicted(await load("other.gguf")), expected) < 1e-6);
  });

  it("are refused by their own keys if a part is missing or cannot take its place", async () => {
    const part = async (changed: Readonly<Record<string, RawTensor>>) =>
      fluxPart(await weightFile(writeWeights(file("changed.safetensors"), changed)), "");
    const { "transformer_blocks.1.attn.to_q.weight": _q, ...withoutQuery } = tensors;
    const query = /"transformer_blocks\.1\.attn\.to_q\.weight" of shape \[288, 96\], received none/;
    await refuses(part(withoutQuery), "model.invalid", query);
    const { "transformer_blocks.1.attn.to_k.weight": _k, ...withoutKeys } = tensors;
    await refuses(part(withoutKeys), "model.invalid", /of shape \[288, 96\], received \[96, 96\]/);
    const { "proj_out.weight": _out, ...withoutLast } = tensors;
    await refuses(part(withoutLast), "model.invalid", /"proj_out\.weight" of 2 sides, received none/);
    const last = tensors["norm_out.linear.weight"]!;
    const odd = { ...last, dtype: "U8", shape: [1, last.bytes.length] };
    const halves = /"norm_out\.linear\.weight" of two halves, each of whole rows, received U8 \[1, /;
    await refuses(part({ ...tensors, "norm_out.linear.weight": odd }), "model.unsupported", halves);
    const both = { ...tensors, "img_in.weight": tensors["x_embedder.weight"]! };
    await refuses(part(both), "model.unsupported", /"img_in\.weight" in one layout with the others, received/);
    const further = { ...tensors, "single_transformer_blocks.0.adapter.weight": tensors["x_embedder.bias"]! };
    await refuses(part(further), "model.unsupported", /unknown weight "single_transformer_blocks\.0\.adapter\.weight"/);
  });
});

describe("Flux.2 in the layout of diffusers", () => {
  const folder = suiteFolder();
  let host: Host;
  let tensors: Record<string, RawTensor>;
  const file = (name: string): string => join(folder(), "diffusion_models", name);
  before(() => {
    unpackFlux(folder());
    const own = readSafetensors(readFileSync(file("flux2_dev.safetensors"))).tensors;
    tensors = diffusersFlux2(Object.fromEntries(own), WIDTH);
    writeWeights(file("diffusers.safetensors"), tensors);
    host = createCheckpointHost({ models: folder() });
  });
  after(() => host.close?.());

  it("predicts as in its own layout, and takes LoRAs of either's names", async () => {
    const lora = await host.loadFile!("loras", writeLora(folder(), "both.safetensors"));
    const predicted = async (name: string, adapt: boolean) => {
      const loaded = (await host.loadFile!("diffusion_models", name)) as Model;
      const [model] = adapt ? lora.apply(loaded, undefined, { model: 1, clip: 1 }) : [loaded];
      const cond = [[randn([1, 5, 96], { seed: 1 }), { guidance: 4 }]] as unknown as Conditioning;
      return model.predict!(randn([1, 128, 2, 3], { seed: 2 }), 0.7, cond);
    };
    const [own, other] = ["flux2_dev.safetensors", "diffusers.safetensors"] as const;
    assert.deepEqual(await predicted(other, false), await predicted(own, false));
    const [changed, plain] = [await predicted(own, true), await predicted(own, false)];
    assert.ok(layerError(await predicted(other, true), changed) < 1e-6);
    assert.ok(layerError(changed, plain) > 1e-3);
  });

  it("is refused by its own keys if a part is missing", async () => {
    const key = "single_transformer_blocks.1.attn.to_qkv_mlp_proj.weight";
    const { [key]: _, ...rest } = tensors;
    const part = async () => fluxPart(await weightFile(writeWeights(file("changed.safetensors"), rest)), "");
    const expected = new RegExp(`"${key.replaceAll(".", "\\.")}" of shape \\[864, 96\\], received none`);
    await refuses(part(), "model.invalid", expected);
  });
});

/** A LoRA of rank 1 on layers of both kinds of blocks, in names of diffusers. */
function writeLora(folder: string, name: string): string {
  const layers: [string, number, number][] = [
    ["transformer_blocks.0.attn.to_k", WIDTH, WIDTH],
    ["transformer_blocks.1.ff.linear_in", 6 * WIDTH, WIDTH],
    ["single_transformer_blocks.0.attn.to_qkv_mlp_proj", 9 * WIDTH, WIDTH],
    ["single_transformer_blocks.1.attn.to_out", WIDTH, 4 * WIDTH],
  ];
  const tensor = (shape: [number, number], seed: number): RawTensor => {
    const { data } = randn(shape, { seed });
    return { dtype: "F32", shape, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
  };
  const all = layers.flatMap(([layer, rows, columns], seed): [string, RawTensor][] => [
    [`transformer.${layer}.lora_A.weight`, tensor([1, columns], seed)],
    [`transformer.${layer}.lora_B.weight`, tensor([rows, 1], seed + 10)],
  ]);
  writeWeights(join(folder, "loras", name), Object.fromEntries(all));
  return name;
}
