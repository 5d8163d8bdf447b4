import { type Rule, TEXTS } from "../../../base/options.js";
import type { HostFiles } from "../../host.js";

/** A kind of model files, by the name of ComfyUI's folder. */
export type ModelKind = keyof HostFiles | "checkpoints" | "embeddings" | "vae_approx";

/** Folders of each kind below a root: ComfyUI has renamed some. */
export const KIND_FOLDERS: Readonly<Record<ModelKind, readonly string[]>> = {
  checkpoints: ["checkpoints", "diffusers"],
  loras: ["loras"],
  vae: ["vae"],
  vae_approx: ["vae_approx"],
  embeddings: ["embeddings"],
  controlnet: ["controlnet", "t2i_adapter"],
  upscale_models: ["upscale_models"],
  clip_vision: ["clip_vision"],
  ipadapter: ["ipadapter"],
  style_models: ["style_models"],
  gligen: ["gligen"],
  hypernetworks: ["hypernetworks"],
  diffusion_models: ["diffusion_models", "unet"],
  text_encoders: ["text_encoders", "clip"],
  model_patches: ["model_patches"],
};

/** Kinds in the words of a message: "no file … among the …". */
export const KIND_WORDS: Readonly<Record<ModelKind, string>> = {
  checkpoints: "checkpoints",
  loras: "LoRAs",
  vae: "VAEs",
  vae_approx: "VAEs for previews",
  embeddings: "embeddings",
  controlnet: "ControlNets",
  upscale_models: "upscale models",
  clip_vision: "CLIP vision models",
  ipadapter: "IPAdapters",
  style_models: "style models",
  gligen: "GLIGEN models",
  hypernetworks: "hypernetworks",
  diffusion_models: "diffusion models",
  text_encoders: "text encoders",
  model_patches: "model patches",
};

/** Kind that keeps its files in folders of this name; undefined for any other name, such as "configs". */
export function kindOf(folder: string): ModelKind | undefined {
  const kinds = Object.keys(KIND_FOLDERS) as ModelKind[];
  return kinds.find((kind) => KIND_FOLDERS[kind].includes(folder));
}

/** Folders from which the host loads models. */
export const LOADABLE = [
  "checkpoints",
  "diffusion_models",
  "text_encoders",
  "vae",
  "loras",
  "controlnet",
  "upscale_models",
  "clip_vision",
  "ipadapter",
  "model_patches",
] as const satisfies readonly ModelKind[];

/** Rule of folders of models. */
export const MODELS_RULE: Rule = [
  "a folder or a list of folders",
  (value) => typeof value === "string" || (TEXTS[1](value) && (value as readonly string[]).length > 0),
];
