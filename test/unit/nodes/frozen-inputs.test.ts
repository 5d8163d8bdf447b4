import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPreviewHost, encodePng, invokeNode, registry, Tensor } from "latentkit";
import { filesIn, temporaryFolder } from "../../helpers/folders.js";
import { FILES, fileHost, layeredClip, patchable } from "../../helpers/graph/file-host.js";
import { goodInputs, type Inputs } from "../../helpers/graph/node-inputs.js";
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
    };
    return inputs[key] ?? { ...goodInputs(key), ...(await objectsOf(key)) };
  }

  /** Files of a host, and models that it can change. */
  async function objectsOf(key: string): Promise<Inputs> {
    const kinds: Record<string, keyof typeof FILES> = {
      ...{ lora_name: "loras", vae_name: "vae", control_net_name: "controlnet", model_name: "upscale_models" },
      ...{ style_model_name: "style_models", gligen_name: "gligen", hypernetwork_name: "hypernetworks" },
      ...{ unet_name: "diffusion_models", clip_name1: "text_encoders", clip_name2: "text_encoders" },
      clip_name: key === "CLIPLoader" ? "text_encoders" : "clip_vision",
    };
    const objects: Record<string, unknown> = {
      MODEL: await patchable(key.endsWith("Cascade") || key.endsWith("Discrete") ? "sd15" : "sd3"),
      CLIP: layeredClip("l"),
      CONTROL_NET: FILES.controlnet(),
      UPSCALE_MODEL: FILES.upscale_models(),
      CLIP_VISION: FILES.clip_vision(),
      STYLE_MODEL: FILES.style_models(),
    };
    const { inputs } = registry.get(key)!;
    const found = Object.entries(inputs).flatMap(([name, { type }]) => {
      const kind = kinds[name];
      if (kind !== undefined) return [[name, `${kind}.safetensors`]];
      return type in objects ? [[name, objects[type]]] : [];
    });
    return Object.fromEntries(found);
  }

  for (const key of registry.keys()) {
    it(key, async () => {
      const picture = await encodePng(Tensor.full([2, 2, 4], 0.5));
      writeFileSync(join(folder(), "a.png"), picture);
      const inputs = await inputsOf(key);
      const left = Object.keys(registry.get(key)!.inputs).filter((name) => inputs[name] === undefined);
      assert.deepEqual(left, [], "inputs that are not tried");
      const extra_pnginfo = { workflow: { nodes: [{ id: 1, widgets_values: ["old"] }] } };
      const hidden = { prompt: { "1": { class_type: key, inputs: {} } }, extra_pnginfo, unique_id: "1" };
      deepFreeze(inputs);
      deepFreeze(hidden);
      const before = hashes(inputs);
      const { result } = await invokeNode(key, inputs, {
        hidden,
        host: registry.get(key)!.category.includes("loaders") ? fileHost() : createPreviewHost(),
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

  it("returns a copy of the pipe where a node changes it", async () => {
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
