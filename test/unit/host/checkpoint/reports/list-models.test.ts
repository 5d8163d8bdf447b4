import assert from "node:assert/strict";
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ListProgress, listModels } from "latentkit/models";
import type { ModelKind } from "#src/host/checkpoint/files/kinds.js";
import { familyInWords } from "#src/host/checkpoint/reports/list-models.js";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";
import { sha256, temporaryFolder } from "../../../../helpers/folders.js";
import { unpackAdapters } from "../../../../helpers/models/golden-adapters.js";
import { unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { modelsFolder, ownCacheFolder } from "../../../../helpers/models/models-folder.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("listModels", () => {
  const folder = temporaryFolder();
  ownCacheFolder(folder);

  it("recognises files of every kind, with sizes, types and hashes", async () => {
    const models = modelsFolder(
      folder(),
      "checkpoints/sd1_fp8",
      "checkpoints/sdxl",
      "checkpoints/tiny-sd2-v",
      "checkpoints/sd1_inpaint",
      "vae/tiny-vae",
      "loras/sdxl_kohya",
      "loras/sd1_lycoris",
      "loras/sd1_diffusers",
      "embeddings/tiny_xl",
      "controlnet/tiny-sd1-control",
      "upscale_models/tiny-4x",
    );
    const listed = await listModels({ models });
    assert.deepEqual(
      listed.map(({ kind, name, family, dtypes }) => [`${kind}/${name}`, family, dtypes.join(" ")]),
      [
        ["checkpoints/sd1_fp8.safetensors", "SD 1", "F16 F8_E4M3"],
        ["checkpoints/sd1_inpaint.safetensors", "SD 1 inpainting", "BF16"],
        ["checkpoints/sdxl.safetensors", "SDXL", "F16"],
        ["checkpoints/tiny-sd2-v.safetensors", "SD 2 v", "F16"],
        ["loras/sd1_diffusers.safetensors", "LoRA (diffusers)", "F32"],
        ["loras/sd1_lycoris.safetensors", "LoRA, LoHa, LoKr (kohya, DoRA)", "F32"],
        ["loras/sdxl_kohya.safetensors", "LoRA (kohya)", "F16"],
        ["vae/tiny-vae.safetensors", "VAE", "F16"],
        ["embeddings/tiny_xl.safetensors", "embedding of SDXL, 2 tokens of 128", "F32"],
        ["controlnet/tiny-sd1-control.safetensors", "ControlNet of SD 1", "F16"],
        ["upscale_models/tiny-4x.safetensors", "ESRGAN x4", "F16"],
      ],
    );
    for (const { path, bytes, parameters, sha256: hash, autoV2, refusal } of listed) {
      const content = readFileSync(path);
      assert.deepEqual([bytes, hash, autoV2], [content.length, sha256(content), sha256(content).slice(0, 10)]);
      assert.ok(parameters! > 0 && parameters! < bytes);
      assert.equal(refusal, undefined);
    }
  });

  it("recognises image adapters, their encoders and all that guides by a picture", async () => {
    unpackAdapters(folder());
    const listed = await listModels({ models: folder(), hashes: false });
    const families = Object.fromEntries(listed.map(({ kind, name, family }) => [`${kind}/${name}`, family]));
    const expected = {
      "clip_vision/CLIP-ViT-H-14-laion2B-s32B-b79K.safetensors": "CLIP vision ViT-H/14",
      "clip_vision/CLIP-ViT-bigG-14-laion2B-39B-b160k.safetensors": "CLIP vision ViT-bigG/14",
      "ipadapter/ip-adapter-full-face_sd15.safetensors": "IPAdapter of SD 1 (full-face)",
      "ipadapter/ip-adapter-plus_sdxl_vit-h.safetensors": "IPAdapter of SDXL (plus)",
      "ipadapter/ip-adapter_sd15.safetensors": "IPAdapter of SD 1 (base)",
      "controlnet/control-lora-canny-rank4.safetensors": "Control-LoRA of SDXL",
      "controlnet/t2iadapter_canny_sd15.safetensors": "T2I-Adapter of SD 1",
      "controlnet/t2iadapter_color_sd14v1.safetensors": "T2I-Adapter of SD 1, light",
      "controlnet/union_sdxl.safetensors": "ControlNet of SDXL, 6 kinds of pictures",
    };
    for (const [name, family] of Object.entries(expected)) assert.equal(families[name], family, name);
  });

  it("says in one sentence why a file cannot be loaded", async () => {
    const models = modelsFolder(folder(), "checkpoints/sd1_fp8", "loras/sd1_diffusers", "embeddings/tiny-a");
    const cut = join(models, "checkpoints/sd1_fp8.safetensors");
    truncateSync(cut, 5_000_000);
    const lora = readFileSync(join(models, "loras/sd1_diffusers.safetensors"));
    writeFileSync(join(models, "checkpoints/lora.safetensors"), lora);
    writeFileSync(join(models, "checkpoints/old.ckpt"), Buffer.from(`PK\x03\x04${"\0".repeat(26)}archive/data.pkl`));
    writeFileSync(
      join(models, "loras/tiny-a.safetensors"),
      readFileSync(join(models, "embeddings/tiny-a.safetensors")),
    );
    mkdirSync(join(models, "gligen"));
    writeFileSync(join(models, "gligen/boxes.safetensors"), lora);
    const listed = await listModels({ models, hashes: false });
    const refusals = Object.fromEntries(
      listed.flatMap(({ kind, name, refusal }) => (refusal === undefined ? [] : [[`${kind}/${name}`, refusal]])),
    );
    const expected = "a checkpoint of SD 1, SD 2, SDXL, SD 3, Z-Image, Qwen-Image, Flux.1, Flux.2 or Chroma";
    assert.match(
      refusals["checkpoints/sd1_fp8.safetensors"]!,
      /^Model "sd1_fp8\.safetensors": the file is cut off: its tensors need \d+ bytes, it has 5000000; .+\.$/,
    );
    assert.match(
      refusals["checkpoints/old.ckpt"]!,
      /^Model "old\.ckpt": expected a \.safetensors or GGUF file, received a PyTorch pickle/,
    );
    assert.equal(
      refusals["checkpoints/lora.safetensors"],
      `Model "lora.safetensors": expected ${expected}, received a LoRA.`,
    );
    assert.equal(
      refusals["loras/tiny-a.safetensors"],
      'Model "tiny-a.safetensors": expected a LoRA, received a textual inversion.',
    );
    assert.equal(
      refusals["gligen/boxes.safetensors"],
      'Model "boxes.safetensors": latentkit cannot load GLIGEN models.',
    );
    assert.equal(Object.keys(refusals).length, 5);
    for (const { sha256: hash, autoV2 } of listed) assert.deepEqual([hash, autoV2], [undefined, undefined]);
  });

  it("reports progress, stops at a signal, and refuses folders that are not there", async () => {
    const models = modelsFolder(folder(), "loras/sd1_diffusers", "embeddings/tiny-a");
    const seen: ListProgress[] = [];
    await listModels({ models, onProgress: (progress) => seen.push(progress) });
    assert.deepEqual(seen, [
      { done: 0, total: 2, name: "sd1_diffusers.safetensors" },
      { done: 1, total: 2, name: "tiny-a.safetensors" },
    ]);
    const signal = AbortSignal.abort();
    await rejectsAs(signal, listModels({ models, signal }));
    await refuses(listModels({ models: join(folder(), "none") }), "config.invalid", /expected a folder/);
  });
});

describe("familyInWords", () => {
  const folder = temporaryFolder();

  it("tells the files of Flux, Chroma and SD 3", async () => {
    unpackFlux(folder());
    const words = async (kind: ModelKind, name: string) =>
      familyInWords(kind, name, await weightFile(join(folder(), kind, `${name}.safetensors`)));
    for (const [kind, name, expected] of [
      ["diffusion_models", "flux_dev", "Flux.1 dev, without text encoder and VAE"],
      ["diffusion_models", "flux_fill", "Flux.1 dev inpainting, without text encoder and VAE"],
      ["checkpoints", "flux_schnell_fp8", "Flux.1 schnell"],
      ["diffusion_models", "flux2_dev", "Flux.2 dev, without text encoder and VAE"],
      ["diffusion_models", "flux2_klein", "Flux.2 klein, without text encoder and VAE"],
      ["diffusion_models", "chroma", "Chroma, without text encoder and VAE"],
      ["checkpoints", "flux2_klein", "Flux.2 klein"],
      ["checkpoints", "sd3", "SD 3.5 medium, without text encoder"],
      ["text_encoders", "clip_g", "text encoder g"],
      ["vae", "flux2_vae", "VAE, 128 channels"],
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
