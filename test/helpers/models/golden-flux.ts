import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Tensor } from "latentkit";
import { openWeightFile, type WeightFile, type WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { root } from "../folders.js";
import { goldenBytes, goldenText } from "../golden-file.js";
import type { Shapes } from "./full-size.js";
import { unpackFolders } from "./golden-graphs.js";
import { type RawTensor, writeWeights } from "./weight-file.js";

/** Tiny models of Flux.1 and T5 and what the reference makes of them. */
export const FLUX_FOLDER = join(root, "test/golden/models-flux");

/** The vectors of all networks; strings name tensors. */
export interface FluxLayers {
  // biome-ignore lint/suspicious/noExplicitAny: each network has fields of its own
  readonly [network: string]: any;
  tensor(name: string): Tensor;
}

/** The vectors of a family: "flux2", "chroma", "sd3"; by default Flux.1's. */
export function fluxLayers(family = "layers_flux1"): FluxLayers {
  const path = join(FLUX_FOLDER, family);
  const { tensors } = readSafetensors(goldenBytes(`${path}.safetensors`)!);
  return { ...JSON.parse(goldenText(`${path}.json`)), tensor: (key: string) => toTensor(tensors.get(key)!) };
}

/** A golden file, "diffusion_models/flux_dev" or the like, unpacked into a folder. */
export function fluxFile(name: string, folder: string): Promise<WeightFile> {
  const path = join(folder, `${name.split("/").at(-1)}.safetensors`);
  writeFileSync(path, goldenBytes(join(FLUX_FOLDER, `${name}.safetensors`))!);
  return openWeightFile({ name, path });
}

/** Weights of a golden file. */
export const fluxWeights = async (name: string, folder: string): Promise<WeightMap> =>
  (await fluxFile(name, folder)).weights;

/** Full-size files whose keys and shapes are known. */
type FullSizeFlux =
  | `flux1_${"dev" | "schnell" | "fill" | "control"}`
  | `flux2_${"dev" | "klein_4b" | "klein_9b" | "vae"}`
  | `sd3${"_medium" | "5_medium" | "5_large"}`
  | "t5xxl"
  | "ae"
  | "qwen3_8b";

/** Keys and shapes of the full-size files of Flux, its text encoders and its VAE. */
export const fullSizeFlux = (): Readonly<Record<FullSizeFlux, Shapes>> =>
  JSON.parse(goldenText(join(FLUX_FOLDER, "keys.json")));

/** Puts all golden models into a folder, also those that are made of others: Fill, schnell with all its parts, Flux.2 dev, SD 3. */
export function unpackFlux(folder: string): void {
  unpackFolders(FLUX_FOLDER, ["diffusion_models", "text_encoders", "vae", "loras"], folder);
  writeJoined(join(folder, "diffusion_models/flux_fill.safetensors"), [
    ["", "diffusion_models/flux_dev"],
    ["", "diffusion_models/flux_fill_img_in"],
  ]);
  writeJoined(join(folder, "checkpoints/sd3.safetensors"), [
    ["", "checkpoints/sd3_part"],
    ["first_stage_model.", "vae/ae"],
  ]);
  writeJoined(join(folder, "diffusion_models/flux2_dev.safetensors"), [
    ["", "diffusion_models/flux2_klein"],
    ["", "diffusion_models/flux2_guidance_in"],
  ]);
  writeJoined(join(folder, "checkpoints/flux_schnell_fp8.safetensors"), [
    ["", "checkpoints/flux_schnell_part"],
    ["text_encoders.clip_l.transformer.", "text_encoders/clip_l"],
    ["text_encoders.t5xxl.transformer.", "text_encoders/t5xxl_fp16"],
    ["vae.", "vae/ae"],
  ]);
}

/** Writes one file of several; a tensor of a later one stands for that of the same key before. */
function writeJoined(path: string, files: readonly (readonly [prefix: string, name: string])[]): void {
  const all: Record<string, RawTensor> = {};
  for (const [prefix, name] of files)
    for (const [key, tensor] of readSafetensors(goldenBytes(join(FLUX_FOLDER, `${name}.safetensors`))!).tensors)
      all[prefix + key] = tensor;
  mkdirSync(dirname(path), { recursive: true });
  writeWeights(path, all);
}
