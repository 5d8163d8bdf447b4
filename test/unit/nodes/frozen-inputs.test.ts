import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ClipVision,
  createPreviewHost,
  encodePng,
  type Host,
  type ImageAdapter,
  invokeNode,
  registry,
  Tensor,
} from "latentkit";
import { writeSafetensors } from "#src/io/safetensors.js";
import { filesIn, temporaryFolder } from "../../helpers/folders.js";
import { FILES, fileHost, layeredClip, patchable } from "../../helpers/graph/file-host.js";
import { goodInputs, type Inputs } from "../../helpers/graph/node-inputs.js";
import { tellingClip } from "../../helpers/graph/telling-clip.js";
import { sha256 } from "../../helpers/tensor/bits.js";

/** Freezes every object in reach; typed arrays cannot be frozen and are hashed instead. */
function deepFreeze(value: unknown, seen = new Set<unknown>()): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || seen.has(value)) return;
  seen.add(value);
  Object.freeze(value);
  for (const item of Object.values(value)) deepFreeze(item, seen);
}

/** The hash of every typed array in reach, by its path. */
function hashes(value: unknown, path = "", out: Record<string, string> = {}, seen = new Set<unknown>()) {
  if (typeof value !== "object" || value === null || seen.has(value)) return out;
  seen.add(value);
  if (value instanceof Float32Array) out[path] = sha256(value);
  else if (ArrayBuffer.isView(value)) {
    out[path] = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  } else {
    for (const [key, item] of Object.entries(value)) hashes(item, `${path}.${key}`, out, seen);
  }
  return out;
}

/** Optional inputs that nodes have, but refuse. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  IPAdapterNoise: ["image_optional"],
  IPAdapterTiled: ["attn_mask"],
};

/** Names that presets look for. */
const PRESET_FILES: Readonly<Record<string, readonly string[]>> = {
  ipadapter: ["ip-adapter_sd15_light_v11.safetensors"],
  clip_vision: ["CLIP-ViT-H-14-laion2B-s32B-b79K.safetensors"],
};

function hostOf(key: string): Host {
  if (key === "IPAdapterUnifiedLoader")
    return { ...fileHost(), files: (kind) => PRESET_FILES[kind], loadFile: async (kind) => FILES[kind]() as never };
  return registry.get(key)!.category.includes("loaders") ? fileHost() : createPreviewHost();
}

describe("no node changes its inputs", () => {
  const folder = temporaryFolder();

  async function inputsOf(key: string): Promise<Inputs> {
    const host = createPreviewHost();
    const { model, clip, vae } = await host.loadCheckpoint("preview-sd15.safetensors");
    const wave = (shape: number[]) =>
      Tensor.from(
        Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => ((i * 37) % 101) / 101),
        shape,
      );
    const image = wave([1, 16, 16, 4]);
    const mask = wave([1, 16, 16]);
    const latent = (seed = 1) => ({ samples: wave([seed, 4, 2, 2]), noise_mask: wave([1, 2, 2]), batch_index: [0] });
    const conditioning = [[wave([1, 77, 8]), { pooled_output: wave([1, 8]) }]];
    const loader_settings = {
      batch_size: 1,
      empty_latent_height: 16,
      empty_latent_width: 16,
      positive: "a (cat:1.2)",
      positive_token_normalization: "mean",
      positive_weight_interpretation: "A1111",
      a1111_prompt_style: false,
      spent_time: "1 s",
    };
    const pipe = {
      model,
      vae,
      clip,
      positive: conditioning,
      negative: conditioning,
      samples: latent(),
      loader_settings,
    };
    const sampling = {
      model,
      positive: conditioning,
      negative: conditioning,
      steps: 2,
      cfg: 3,
      latent_image: latent(),
    };
    const named = { sampler_name: "euler_ancestral", scheduler: "normal" };
    const custom = {
      noise: { seed: 1n, enabled: true },
      guider: { kind: "cfg", model, positive: conditioning, negative: conditioning, cfg: 3 },
      sampler: { sampler: "euler", options: {} },
      sigmas: Tensor.from([2, 1, 0], [3]),
    };
    const saved = { images: image, filename_prefix: "a", save_metadata: true };
    const inputs: Record<string, Inputs> = {
      "ext if": { any: [1], if: { a: [1] }, else: { b: 2 } },
      "ext poseEditor": { image: "a" },
      "ext imageToMask": { image, channel: "green" },
      "ext showSpentTime": { pipe },
      "ext latentNoisy": {
        sampler_name: "euler",
        scheduler: "normal",
        steps: 20,
        start_at_step: 0,
        end_at_step: 20,
        source: "CPU",
        seed: 1,
        pipe,
        optional_model: model,
        optional_latent: latent(),
      },
      "ext latentCompositeMaskedWithCond": {
        pipe,
        text_combine: ["dog", "fish"],
        source_latent: latent(),
        source_mask: mask,
        destination_mask: mask,
        text_combine_mode: "replace",
        replace_text: "cat",
      },
      "ext injectNoiseToLatent": {
        strength: 0.5,
        normalize: true,
        average: false,
        pipe_to_noise: pipe,
        image_to_latent: image,
        latent: latent(),
        noise: latent(),
        mask,
        mix_randn_amount: 0.5,
        seed: 1,
      },
      "ext remoteImageApi": {
        positive: "a",
        negative: "b",
        model: "sd3",
        aspect_ratio: "1:1",
        seed: 1,
        denoise: 0.5,
        optional_image: image,
      },
      "ext saveImageLazy": saved,
      "ext saveTextLazy": {
        text: "a",
        output_file_path: "t",
        file_name: "f",
        file_extension: "csv",
        overwrite: false,
        image,
      },
      "ext showAnythingLazy": { anything: [[1, 2], { a: wave([2]) }, "x"] },
      "ext pipeLoader": {
        ckpt_name: "preview-sd15.safetensors",
        vae_name: "Baked VAE",
        clip_skip: -2,
        lora_name: "None",
        lora_model_strength: 1,
        lora_clip_strength: 1,
        positive: "a",
        negative: "b",
        batch_size: 1,
        empty_latent_width: 16,
        empty_latent_height: 16,
        positive_token_normalization: "mean",
        positive_weight_interpretation: "A1111",
        negative_token_normalization: "none",
        negative_weight_interpretation: "comfy",
        a1111_prompt_style: false,
        steps: 20,
      },
      "ext pipeOut": { pipe },
      "ext pipeEdit": { pipe, model, vae, clip, latent: latent(), positive: conditioning, negative: conditioning },
      LoadImage: { image: "a.png" },
      LoadImageMask: { image: "a.png", channel: "alpha" },
      EmptyLatentImage: { width: 16, height: 16, batch_size: 1 },
      CheckpointLoaderSimple: { ckpt_name: "preview-sd15.safetensors" },
      CLIPTextEncode: { text: "a", clip },
      VAEEncode: { pixels: image, vae },
      VAEDecode: { samples: latent(), vae },
      SaveImage: { images: image, filename_prefix: "a" },
      PreviewImage: { images: image },
      SolidMask: { value: 0.5, width: 4, height: 4 },
      InvertMask: { mask },
      ...latentNodeInputs({ image, mask, vae, latent, conditioning }),
      CLIPSetLastLayer: { clip, stop_at_clip_layer: -2 },
      CLIPTextEncodeSDXL: {
        clip: (await host.loadCheckpoint("preview-sdxl.safetensors")).clip,
        width: 64,
        height: 64,
        crop_w: 0,
        crop_h: 0,
        target_width: 64,
        target_height: 64,
        text_g: "a",
        text_l: "b",
      },
      CLIPTextEncodeSDXLRefiner: { ascore: 6, width: 64, height: 64, text: "a", clip },
      SaveLatent: { samples: latent(), filename_prefix: "a" },
      LoadLatent: { latent: "a.latent" },
      KSampler: { ...sampling, ...named, seed: 1, denoise: 0.9 },
      KSamplerAdvanced: {
        ...sampling,
        ...named,
        add_noise: "enable",
        noise_seed: 1,
        start_at_step: 0,
        end_at_step: 1,
        return_with_leftover_noise: "enable",
      },
      SamplerCustom: { ...sampling, ...custom, add_noise: true, noise_seed: 1 },
      SamplerCustomAdvanced: { ...custom, latent_image: latent() },
    };
    const own = inputs[key] ?? { ...goodInputs(key), ...(await objectsOf(key)) };
    return Object.fromEntries(Object.entries(own).filter(([name]) => !REFUSED[key]?.includes(name)));
  }

  /** Files of a host, and models that it can change. */
  async function objectsOf(key: string): Promise<Inputs> {
    const kinds: Record<string, keyof typeof FILES> = {
      lora_name: "loras",
      vae_name: "vae",
      control_net_name: "controlnet",
      model_name: "upscale_models",
      style_model_name: "style_models",
      ipadapter_file: "ipadapter",
      gligen_name: "gligen",
      hypernetwork_name: "hypernetworks",
      name: "model_patches",
      unet_name: "diffusion_models",
      ...Object.fromEntries([1, 2, 3, 4].map((place) => [`clip_name${place}`, "text_encoders"])),
      clip_name: key.startsWith("CLIPLoader") ? "text_encoders" : "clip_vision",
    };
    const family = key === "IPAdapterStyleComposition" ? "sdxl" : "sd1";
    const adapter = FILES.ipadapter({ type: family }) as ImageAdapter;
    const objects: Record<string, unknown> = {
      MODEL: await patchable(key.endsWith("Cascade") || key.endsWith("Discrete") ? "sd15" : "sd3"),
      CLIP: { ...layeredClip("l"), encodeTexts: tellingClip().clip.encodeTexts },
      CONTROL_NET: FILES.controlnet(),
      UPSCALE_MODEL: FILES.upscale_models(),
      CLIP_VISION: FILES.clip_vision(),
      IPADAPTER: adapter.withEncoder(FILES.clip_vision() as ClipVision),
      STYLE_MODEL: FILES.style_models(),
      MODEL_PATCH: FILES.model_patches(),
    };
    const { inputs } = registry.get(key)!;
    const entries = Object.entries(inputs).flatMap(([name, { type }]) => {
      const kind = kinds[name];
      if (kind !== undefined) return [[name, `${kind}.safetensors`]];
      return type in objects ? [[name, objects[type]]] : [];
    });
    return Object.fromEntries(entries);
  }

  interface Parts {
    image: Tensor;
    mask: Tensor;
    vae: unknown;
    latent: (batch?: number) => Inputs;
    conditioning: unknown;
  }

  function latentNodeInputs({ image, mask, vae, latent, conditioning }: Parts): Record<string, Inputs> {
    const tiles = { tile_size: 64, overlap: 16, temporal_size: 64, temporal_overlap: 8 };
    const large = Tensor.full([1, 80, 72, 3], 0.5);
    const both = { samples1: latent(), samples2: latent(2) };
    return {
      LatentAdd: both,
      LatentBlend: { ...both, blend_factor: 0.25 },
      LatentBatch: both,
      LatentInterpolate: { ...both, ratio: 0.25 },
      LatentFromBatch: { samples: latent(2), batch_index: 1, length: 1 },
      RepeatLatentBatch: { samples: latent(3), amount: 2 },
      RebatchLatents: { latents: [latent(2), latent()], batch_size: [2] },
      RebatchImages: { images: [image, image], batch_size: [2] },
      LatentComposite: { samples_to: latent(), samples_from: latent(), x: 8, y: 8, feather: 16 },
      LatentCompositeMasked: { destination: latent(), source: latent(), x: 8, y: 8, resize_source: true, mask },
      SetLatentNoiseMask: { samples: latent(), mask },
      ConditioningSetMask: { conditioning, mask, strength: 0.5, set_cond_area: "mask bounds" },
      VAEDecodeTiled: { samples: { samples: Tensor.zeros([1, 4, 9, 10]) }, vae, ...tiles },
      VAEEncodeTiled: { pixels: large, vae, ...tiles },
      VAEEncodeForInpaint: { pixels: image, vae, mask, grow_mask_by: 2 },
      InstructPixToPixConditioning: { positive: conditioning, negative: conditioning, vae, pixels: image },
      InpaintModelConditioning: {
        positive: conditioning,
        negative: conditioning,
        vae,
        pixels: image,
        mask,
        noise_mask: true,
      },
    };
  }

  for (const key of registry.keys()) {
    it(key, async () => {
      const picture = await encodePng(Tensor.full([2, 2, 4], 0.5));
      writeFileSync(join(folder(), "a.png"), picture);
      writeFileSync(join(folder(), "a.latent"), writeSafetensors({ latent_tensor: Tensor.zeros([1, 4, 2, 2]) }));
      const inputs = await inputsOf(key);
      const left = Object.keys(registry.get(key)!.inputs).filter((name) => inputs[name] === undefined);
      assert.deepEqual(left, REFUSED[key] ?? [], "inputs that are not tried");
      const extra_pnginfo = { workflow: { nodes: [{ id: 1, widgets_values: ["old"] }] } };
      const hidden = { prompt: { "1": { class_type: key, inputs: {} } }, extra_pnginfo, unique_id: "1" };
      deepFreeze(inputs);
      deepFreeze(hidden);
      const before = hashes(inputs);
      const { result } = await invokeNode(key, inputs, {
        hidden,
        host: hostOf(key),
        outputDir: join(folder(), "out"),
        inputDir: folder(),
        fetch: async () => Response.json({ image: picture.toString("base64") }),
        config: { remote_image_api: { keys: [{ name: "a", key: "k" }] } },
      });
      assert.deepEqual(hashes(inputs), before);
      assert.equal(result.length, registry.get(key)!.outputs.length);
      assert.deepEqual(extra_pnginfo.workflow.nodes[0]!.widgets_values, ["old"]);
      if (registry.get(key)!.writesFiles) assert.ok(filesIn(join(folder(), "out")).length > 0);
    });
  }

  it("returns a copy of the pipe if a node changes it", async () => {
    for (const key of ["ext latentNoisy", "ext latentCompositeMaskedWithCond", "ext pipeEdit"]) {
      const inputs = await inputsOf(key);
      const { result } = await invokeNode(key, inputs);
      const [before, after] = [inputs.pipe as Inputs, result[0] as Inputs];
      assert.notEqual(after, before);
      assert.notEqual(after.samples, before.samples);
      assert.equal(after.model, before.model);
      assert.deepEqual(Object.keys(after).sort(), Object.keys(before).sort());
    }
  });
});
