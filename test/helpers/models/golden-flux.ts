import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tensor } from "latentkit";
import { openWeightFile, type WeightFile, type WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, toTensor } from "#src/io/safetensors/read.js";
import { root } from "../folders.js";
import { goldenBytes, goldenText } from "../golden-file.js";
import type { Shapes } from "./full-size.js";

/** Tiny models of Flux.1 and T5 and what the reference makes of them. */
export const FLUX_FOLDER = join(root, "test/golden/models-flux");

/** The vectors of all networks; strings name tensors. */
export interface FluxLayers {
  // biome-ignore lint/suspicious/noExplicitAny: each network has fields of its own
  readonly [network: string]: any;
  tensor(name: string): Tensor;
}

export function fluxLayers(): FluxLayers {
  const path = join(FLUX_FOLDER, "layers_flux1");
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
type FullSizeFlux = "flux1_dev" | "flux1_schnell" | "flux1_fill" | "flux1_control" | "flux2_dev" | "t5xxl" | "ae";

/** Keys and shapes of the full-size files of Flux, its text encoders and its VAE. */
export const fullSizeFlux = (): Readonly<Record<FullSizeFlux, Shapes>> =>
  JSON.parse(goldenText(join(FLUX_FOLDER, "keys.json")));
