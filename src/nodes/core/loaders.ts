import { describe } from "../../base/errors.js";
import { withHostModel } from "../../host/derived-model.js";
import type { HostFiles } from "../../host/host.js";
import type { Checkpoint, Clip, ClipVision, Model } from "../../host/types.js";
import { defineNode } from "../define.js";
import {
  atInput,
  changedModel,
  fileName,
  type Loading,
  lacking,
  loadHostCheckpoint,
  loadHostFile,
  patchedModel,
} from "../host-files.js";
import { choice, clip, float, model } from "../inputs.js";

/** Input with the choice of the host's checkpoints. */
export const checkpointName = () => ({
  ...choice(({ host }) => host?.checkpoints() ?? []),
  files: "checkpoints" as const,
});

/** Input with the choice of checkpoints that take pictures as prompts. */
const visionCheckpointName = () => ({ ...checkpointName(), needs: { ability: "clip-vision" } as const });

const MODEL = { name: "MODEL", type: "MODEL" } as const;
const CLIP = { name: "CLIP", type: "CLIP" } as const;
const VAE = { name: "VAE", type: "VAE" } as const;
const CLIP_VISION = { name: "CLIP_VISION", type: "CLIP_VISION" } as const;

/** Configurations whose clip ends one layer earlier. */
const SKIPS_LAYER = ["anything_v3.yaml", "v1-inference_clip_skip_2.yaml", "v1-inference_clip_skip_2_fp16.yaml"];

/** A node's run that loads the file of a kind that an input names, as its one output. */
const loads =
  <Input extends string>(kind: keyof HostFiles, input: Input, output: string) =>
  async (inputs: Readonly<Record<Input, string>>, loading: Loading) => ({
    [output]: await loadHostFile(kind, input, inputs[input], loading),
  });

export const loaderNodes = [
  defineNode({
    key: "CheckpointLoaderSimple",
    displayName: "Load Checkpoint",
    category: "loaders",
    description: "Loads a checkpoint of the host: its model, CLIP and VAE.",
    inputs: { ckpt_name: checkpointName() },
    outputs: [MODEL, CLIP, VAE],
    run: async ({ ckpt_name }, { host, signal, log }) => {
      const { model, clip, vae } = await loadHostCheckpoint(ckpt_name, { host, signal, log });
      return { MODEL: model, CLIP: clip, VAE: vae };
    },
  }),
  defineNode({
    key: "CheckpointLoader",
    displayName: "Load Checkpoint With Config (DEPRECATED)",
    category: "advanced/loaders",
    description: "Loads a checkpoint of the host; only clip skip is taken from the name of the configuration.",
    deprecated: true,
    inputs: {
      config_name: choice(() => undefined, {
        tooltip: "Any name; only three with clip skip, such as v1-inference_clip_skip_2.yaml, have an effect.",
      }),
      ckpt_name: checkpointName(),
    },
    outputs: [MODEL, CLIP, VAE],
    run: async ({ config_name, ckpt_name }, { host, signal, log }) => {
      const { model, clip, vae } = await loadHostCheckpoint(ckpt_name, { host, signal, log });
      if (!SKIPS_LAYER.includes(config_name)) return { MODEL: model, CLIP: clip, VAE: vae };
      if (clip.atLayer === undefined) throw lacking(host, `has no earlier layers of a clip for ${config_name}`);
      return { MODEL: model, CLIP: clip.atLayer(-2), VAE: vae };
    },
  }),
  defineNode({
    key: "unCLIPCheckpointLoader",
    category: "loaders",
    description: "Loads one of the host's checkpoints that take pictures as prompts.",
    inputs: { ckpt_name: visionCheckpointName() },
    outputs: [MODEL, CLIP, VAE, CLIP_VISION],
    run: async ({ ckpt_name }, { host, signal, log }) => {
      const { model, clip, vae, clipVision } = await loadVision(ckpt_name, { host, signal, log });
      return { MODEL: model, CLIP: clip, VAE: vae, CLIP_VISION: clipVision };
    },
  }),
  defineNode({
    key: "ImageOnlyCheckpointLoader",
    displayName: "Image Only Checkpoint Loader (img2vid model)",
    category: "loaders/video_models",
    description: "Loads one of the host's checkpoints that take pictures as prompts, without its CLIP.",
    inputs: { ckpt_name: visionCheckpointName() },
    outputs: [MODEL, CLIP_VISION, VAE],
    run: async ({ ckpt_name }, { host, signal, log }) => {
      const { model, vae, clipVision } = await loadVision(ckpt_name, { host, signal, log });
      return { MODEL: model, CLIP_VISION: clipVision, VAE: vae };
    },
  }),
  defineNode({
    key: "UNETLoader",
    displayName: "Load Diffusion Model",
    category: "advanced/loaders",
    description: "Loads a diffusion model of the host, without CLIP and VAE.",
    inputs: {
      unet_name: fileName("diffusion_models"),
      weight_dtype: choice(["default", "fp8_e4m3fn", "fp8_e4m3fn_fast", "fp8_e5m2"], {
        tooltip: "No effect: weights keep their own type.",
      }),
    },
    outputs: { MODEL: "MODEL" },
    run: async ({ unet_name, weight_dtype }, { host, signal, log }) => ({
      MODEL: await loadHostFile("diffusion_models", "unet_name", unet_name, { host, signal, log }, { weight_dtype }),
    }),
  }),
  defineNode({
    key: "UnetLoaderGGUF",
    displayName: "Unet Loader (GGUF)",
    category: "advanced/loaders",
    description: "Loads a diffusion model of the host, as UNETLoader does.",
    inputs: { unet_name: fileName("diffusion_models") },
    outputs: { MODEL: "MODEL" },
    run: loads("diffusion_models", "unet_name", "MODEL"),
  }),
  defineNode({
    key: "VAELoader",
    displayName: "Load VAE",
    category: "loaders",
    description: "Loads a separate VAE of the host.",
    inputs: { vae_name: fileName("vae") },
    outputs: { VAE: "VAE" },
    run: loads("vae", "vae_name", "VAE"),
  }),
  defineNode({
    key: "ControlNetLoader",
    displayName: "Load ControlNet Model",
    category: "loaders",
    description: "Loads a ControlNet or T2I adapter of the host.",
    inputs: { control_net_name: fileName("controlnet") },
    outputs: { CONTROL_NET: "CONTROL_NET" },
    run: loads("controlnet", "control_net_name", "CONTROL_NET"),
  }),
  defineNode({
    key: "DiffControlNetLoader",
    displayName: "Load ControlNet Model (diff)",
    category: "loaders",
    description: "Loads a ControlNet of the host; one stored as differences is added to the model that it guides.",
    inputs: { model: model(), control_net_name: fileName("controlnet") },
    outputs: { CONTROL_NET: "CONTROL_NET" },
    run: loads("controlnet", "control_net_name", "CONTROL_NET"),
  }),
  defineNode({
    key: "UpscaleModelLoader",
    displayName: "Load Upscale Model",
    category: "loaders",
    description: "Loads one of the host's models that enlarge images.",
    inputs: { model_name: fileName("upscale_models") },
    outputs: { UPSCALE_MODEL: "UPSCALE_MODEL" },
    run: loads("upscale_models", "model_name", "UPSCALE_MODEL"),
  }),
  defineNode({
    key: "CLIPVisionLoader",
    displayName: "Load CLIP Vision",
    category: "loaders",
    description: "Loads a CLIP vision encoder of the host.",
    inputs: { clip_name: fileName("clip_vision") },
    outputs: { CLIP_VISION: "CLIP_VISION" },
    run: loads("clip_vision", "clip_name", "CLIP_VISION"),
  }),
  defineNode({
    key: "StyleModelLoader",
    displayName: "Load Style Model",
    category: "loaders",
    description: "Loads a style model of the host, which turns pictures into tokens of a prompt.",
    inputs: { style_model_name: fileName("style_models") },
    outputs: { STYLE_MODEL: "STYLE_MODEL" },
    run: loads("style_models", "style_model_name", "STYLE_MODEL"),
  }),
  defineNode({
    key: "GLIGENLoader",
    category: "loaders",
    description: "Loads a GLIGEN model of the host, which places prompts in boxes.",
    inputs: { gligen_name: fileName("gligen") },
    outputs: { GLIGEN: "GLIGEN" },
    run: loads("gligen", "gligen_name", "GLIGEN"),
  }),
  defineNode({
    key: "ModelPatchLoader",
    category: "advanced/loaders",
    description: "Loads one of the host's model patches, such as a ControlNet of Z-Image or Qwen-Image.",
    inputs: { name: fileName("model_patches") },
    outputs: { MODEL_PATCH: "MODEL_PATCH" },
    run: loads("model_patches", "name", "MODEL_PATCH"),
  }),
] as const;

/** A checkpoint that takes pictures as prompts. Fails with host.missing for any other. */
async function loadVision(name: string, loading: Loading): Promise<Checkpoint & { readonly clipVision: ClipVision }> {
  const { clipVision, ...others } = await loadHostCheckpoint(name, loading);
  if (clipVision !== undefined) return { ...others, clipVision };
  throw lacking(loading.host, `has no CLIP vision model in checkpoint ${describe(name)}`);
}

/** Input with a strength of a LoRA; 0 leaves things as they are. */
export const loraStrength = () => float({ default: 1, min: -100, max: 100, step: 0.01 });

export const adapterNodes = [
  defineNode({
    key: "LoraLoader",
    displayName: "Load LoRA",
    category: "loaders",
    description: "Changes the weights of a model and a clip by a LoRA of the host.",
    inputs: {
      model: model(),
      clip: clip(),
      lora_name: fileName("loras"),
      strength_model: loraStrength(),
      strength_clip: loraStrength(),
    },
    outputs: [
      { name: "MODEL", type: "MODEL" },
      { name: "CLIP", type: "CLIP" },
    ],
    run: async ({ model, clip, lora_name, strength_model, strength_clip }, { host, signal, log }) => {
      const strengths = { model: strength_model, clip: strength_clip };
      const [MODEL, CLIP] = await withLora(lora_name, model, clip, strengths, { host, signal, log });
      return { MODEL, CLIP };
    },
  }),
  defineNode({
    key: "LoraLoaderModelOnly",
    category: "loaders",
    description: "Changes the weights of a model by a LoRA of the host.",
    inputs: { model: model(), lora_name: fileName("loras"), strength_model: loraStrength() },
    outputs: { MODEL: "MODEL" },
    run: async ({ model, lora_name, strength_model }, { host, signal, log }) => {
      const strengths = { model: strength_model, clip: 0 };
      const [MODEL] = await withLora(lora_name, model, undefined, strengths, { host, signal, log });
      return { MODEL };
    },
  }),
  defineNode({
    key: "HypernetworkLoader",
    category: "loaders",
    description: "Changes the attention of a model by a hypernetwork of the host.",
    inputs: {
      model: changedModel(["strength", 0]),
      hypernetwork_name: fileName("hypernetworks"),
      strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
    },
    outputs: { MODEL: "MODEL" },
    run: async ({ model, hypernetwork_name, strength }, { host, signal, log }) => {
      if (strength === 0) return { MODEL: model };
      const hypernetwork = await loadHostFile("hypernetworks", "hypernetwork_name", hypernetwork_name, {
        host,
        signal,
        log,
      });
      const inputs = { hypernetwork, strength };
      return { MODEL: patchedModel(model, { node: "HypernetworkLoader", inputs }, host) };
    },
  }),
] as const;

/** Changes the weights of a model, and those of a clip if there is one; `log` gets the parts of the LoRA without a place. */
export async function withLora(
  lora_name: string,
  model: Model,
  clip: Clip | undefined,
  strengths: { model: number; clip: number },
  loading: Loading,
): Promise<[Model, Clip | undefined]> {
  if (strengths.model === 0 && strengths.clip === 0) return [model, clip];
  const lora = await loadHostFile("loras", "lora_name", lora_name, loading);
  return atInput("lora_name", () => {
    let changed = clip;
    const changedModel = withHostModel(model, (own) => {
      const unmatched = lora.unmatched?.(own, clip);
      if (unmatched !== undefined) loading.log(`input "lora_name": ${unmatched}`);
      const [result, ofClip] = lora.apply(own, clip, strengths);
      changed = ofClip ?? clip;
      return result;
    });
    return [changedModel, changed];
  });
}
