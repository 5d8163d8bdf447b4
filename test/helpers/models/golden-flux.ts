import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tensor } from "latentkit";
import { openWeightFile, type WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, toTensor } from "#src/io/safetensors/read.js";
import { root } from "../folders.js";
import { goldenBytes, goldenText } from "../golden-file.js";

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

/** Weights of a golden model, "diffusion_models/flux_dev" or the like, unpacked into a folder. */
export async function fluxWeights(name: string, folder: string): Promise<WeightMap> {
  const path = join(folder, `${name.split("/").at(-1)}.safetensors`);
  writeFileSync(path, goldenBytes(join(FLUX_FOLDER, `${name}.safetensors`))!);
  return (await openWeightFile({ name, path })).weights;
}
