import assert from "node:assert/strict";
import { join } from "node:path";
import type { ModelKind } from "#src/host/checkpoint/files/kinds.js";
import { familyInWords } from "#src/host/checkpoint/reports/family.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("familyInWords", () => {
  const folder = temporaryFolder();

  it("tells the files of Flux.1", async () => {
    unpackFlux(folder());
    const words = async (kind: ModelKind, name: string) =>
      familyInWords(kind, name, await weightFile(join(folder(), kind, `${name}.safetensors`)));
    for (const [kind, name, expected] of [
      ["diffusion_models", "flux_dev", "Flux.1 dev, without text encoder and VAE"],
      ["diffusion_models", "flux_fill", "Flux.1 dev inpainting, without text encoder and VAE"],
      ["checkpoints", "flux_schnell_fp8", "Flux.1 schnell"],
      ["text_encoders", "t5xxl_fp16", "text encoder T5"],
      ["text_encoders", "clip_l", "text encoder l"],
      ["vae", "ae", "VAE, 16 channels"],
      ["loras", "flux_kohya", "LoRA (kohya)"],
      ["loras", "flux_diffusers", "LoRA (diffusers)"],
      ["loras", "flux_control", "LoRA (plain names)"],
    ] as const)
      assert.equal(await words(kind, name), expected, name);
  });
});
