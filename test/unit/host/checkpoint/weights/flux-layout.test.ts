import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Conditioning, type Host, type Model, randn } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { fluxPart } from "#src/host/checkpoint/recognition/transformers/flux.js";
import { readSafetensors } from "#src/io/safetensors/read.js";
import { refuses } from "../../../../helpers/errors.js";
import { suiteFolder } from "../../../../helpers/folders.js";
import { diffusersFlux } from "../../../../helpers/models/diffusers-flux.js";
import { unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { ownCacheFolder } from "../../../../helpers/models/models-folder.js";
import { writeQuantised } from "../../../../helpers/models/quantised-file.js";
import { type RawTensor, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

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

  it("are refused by their own keys where a part is missing or cannot take its place", async () => {
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
    await refuses(part(further), "model.unsupported", /further weight "single_transformer_blocks\.0\.adapter\.weight"/);
  });
});
