import { describe } from "../../base/errors.js";
import { defineNode } from "../define.js";
import { fileName, lacking, loadHostCheckpoint, loadHostFile } from "../host-files.js";
import { choice, model } from "../inputs.js";

/** Input with the choice of the host's checkpoints. */
export const checkpointName = () => ({
  ...choice(({ host }) => host?.checkpoints() ?? []),
  files: "checkpoints" as const,
});

export const loaderNodes = [
  defineNode({
    key: "CheckpointLoaderSimple",
    displayName: "Load Checkpoint",
    category: "loaders",
    description: "Loads a checkpoint of the host: its model, CLIP and VAE.",
    inputs: { ckpt_name: checkpointName() },
    outputs: [
      { name: "MODEL", type: "MODEL" },
      { name: "CLIP", type: "CLIP" },
      { name: "VAE", type: "VAE" },
    ],
    run: async ({ ckpt_name }, { host, signal, log }) => {
      const { model, clip, vae } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
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
    outputs: [
      { name: "MODEL", type: "MODEL" },
      { name: "CLIP", type: "CLIP" },
      { name: "VAE", type: "VAE" },
    ],
    run: async ({ config_name, ckpt_name }, { host, signal, log }) => {
      const { model, clip, vae } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
      if (!SKIPS_LAYER.includes(config_name)) return { MODEL: model, CLIP: clip, VAE: vae };
      if (clip.atLayer === undefined) throw lacking(host, `no earlier layers of a clip, which ${config_name} asks for`);
      return { MODEL: model, CLIP: clip.atLayer(-2), VAE: vae };
    },
  }),
  defineNode({
    key: "unCLIPCheckpointLoader",
    category: "loaders",
    description: "Loads one of the host's checkpoints that take pictures as prompts.",
    inputs: { ckpt_name: { ...checkpointName(), needs: { ability: "clip-vision" } as const } },
    outputs: [
      { name: "MODEL", type: "MODEL" },
      { name: "CLIP", type: "CLIP" },
      { name: "VAE", type: "VAE" },
      { name: "CLIP_VISION", type: "CLIP_VISION" },
    ],
    run: async ({ ckpt_name }, { host, signal, log }) => {
      const { model, clip, vae, clipVision } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
      if (clipVision === undefined) throw lacking(host, `no CLIP vision model in ${describe(ckpt_name)}`);
      return { MODEL: model, CLIP: clip, VAE: vae, CLIP_VISION: clipVision };
    },
  }),
  defineNode({
    key: "ImageOnlyCheckpointLoader",
    displayName: "Image Only Checkpoint Loader (img2vid model)",
    category: "loaders/video_models",
    description: "Loads one of the host's checkpoints that take pictures as prompts, without its CLIP.",
    inputs: { ckpt_name: { ...checkpointName(), needs: { ability: "clip-vision" } as const } },
    outputs: [
      { name: "MODEL", type: "MODEL" },
      { name: "CLIP_VISION", type: "CLIP_VISION" },
      { name: "VAE", type: "VAE" },
    ],
    run: async ({ ckpt_name }, { host, signal, log }) => {
      const { model, vae, clipVision } = await loadHostCheckpoint({ ckpt_name }, { host, signal, log });
      if (clipVision === undefined) throw lacking(host, `no CLIP vision model in ${describe(ckpt_name)}`);
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
      MODEL: await loadHostFile("diffusion_models", { unet_name }, { host, signal, log }, { weight_dtype }),
    }),
  }),
  defineNode({
    key: "UnetLoaderGGUF",
    displayName: "Unet Loader (GGUF)",
    category: "advanced/loaders",
    description: "Loads a diffusion model of the host, as UNETLoader does.",
    inputs: { unet_name: fileName("diffusion_models") },
    outputs: { MODEL: "MODEL" },
    run: async ({ unet_name }, { host, signal, log }) => ({
      MODEL: await loadHostFile("diffusion_models", { unet_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "VAELoader",
    displayName: "Load VAE",
    category: "loaders",
    description: "Loads a separate VAE of the host.",
    inputs: { vae_name: fileName("vae") },
    outputs: { VAE: "VAE" },
    run: async ({ vae_name }, { host, signal, log }) => ({
      VAE: await loadHostFile("vae", { vae_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "ControlNetLoader",
    displayName: "Load ControlNet Model",
    category: "loaders",
    description: "Loads a ControlNet or T2I adapter of the host.",
    inputs: { control_net_name: fileName("controlnet") },
    outputs: { CONTROL_NET: "CONTROL_NET" },
    run: async ({ control_net_name }, { host, signal, log }) => ({
      CONTROL_NET: await loadHostFile("controlnet", { control_net_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "DiffControlNetLoader",
    displayName: "Load ControlNet Model (diff)",
    category: "loaders",
    description: "Loads a ControlNet of the host; one of differences is added to the model that it guides.",
    inputs: { model: model(), control_net_name: fileName("controlnet") },
    outputs: { CONTROL_NET: "CONTROL_NET" },
    run: async ({ control_net_name }, { host, signal, log }) => ({
      CONTROL_NET: await loadHostFile("controlnet", { control_net_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "UpscaleModelLoader",
    displayName: "Load Upscale Model",
    category: "loaders",
    description: "Loads one of the host's models that enlarge images.",
    inputs: { model_name: fileName("upscale_models") },
    outputs: { UPSCALE_MODEL: "UPSCALE_MODEL" },
    run: async ({ model_name }, { host, signal, log }) => ({
      UPSCALE_MODEL: await loadHostFile("upscale_models", { model_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "CLIPVisionLoader",
    displayName: "Load CLIP Vision",
    category: "loaders",
    description: "Loads a CLIP vision encoder of the host.",
    inputs: { clip_name: fileName("clip_vision") },
    outputs: { CLIP_VISION: "CLIP_VISION" },
    run: async ({ clip_name }, { host, signal, log }) => ({
      CLIP_VISION: await loadHostFile("clip_vision", { clip_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "StyleModelLoader",
    displayName: "Load Style Model",
    category: "loaders",
    description: "Loads a style model of the host, which turns pictures into tokens of a prompt.",
    inputs: { style_model_name: fileName("style_models") },
    outputs: { STYLE_MODEL: "STYLE_MODEL" },
    run: async ({ style_model_name }, { host, signal, log }) => ({
      STYLE_MODEL: await loadHostFile("style_models", { style_model_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "GLIGENLoader",
    category: "loaders",
    description: "Loads a GLIGEN model of the host, which places prompts in boxes.",
    inputs: { gligen_name: fileName("gligen") },
    outputs: { GLIGEN: "GLIGEN" },
    run: async ({ gligen_name }, { host, signal, log }) => ({
      GLIGEN: await loadHostFile("gligen", { gligen_name }, { host, signal, log }),
    }),
  }),
  defineNode({
    key: "ModelPatchLoader",
    category: "advanced/loaders",
    description: "Loads one of the host's model patches, such as a ControlNet of Z-Image.",
    inputs: { name: fileName("model_patches") },
    outputs: { MODEL_PATCH: "MODEL_PATCH" },
    run: async ({ name }, { host, signal, log }) => ({
      MODEL_PATCH: await loadHostFile("model_patches", { name }, { host, signal, log }),
    }),
  }),
] as const;

/** Configurations whose clip ends one layer earlier. */
const SKIPS_LAYER = ["anything_v3.yaml", "v1-inference_clip_skip_2.yaml", "v1-inference_clip_skip_2_fp16.yaml"];
