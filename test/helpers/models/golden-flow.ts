import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tensor } from "latentkit";
import { openWeightFile, type WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { root } from "../folders.js";
import { goldenBytes, goldenText } from "../golden-file.js";

/** Tiny models of Z-Image and what the reference makes of them. */
const FOLDER = join(root, "test/golden/models-z-qwen");

/** The vectors of one network; strings name tensors. */
export interface FlowLayers {
  // biome-ignore lint/suspicious/noExplicitAny: each network has fields of its own
  readonly cases: readonly any[];
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly rope?: any;
  /** Those of a VAE: names of tensors. */
  readonly decode?: readonly Readonly<Record<string, string>>[];
  readonly encode?: readonly Readonly<Record<string, string>>[];
  tensor(name: string): Tensor;
}

export function flowLayers(name: string): FlowLayers {
  const path = join(FOLDER, "layers", name);
  const { tensors } = readSafetensors(goldenBytes(`${path}.safetensors`)!);
  return { ...JSON.parse(goldenText(`${path}.json`)), tensor: (key: string) => toTensor(tensors.get(key)!) };
}

/** Weights of a golden model, "diffusion_models/z_image_tiny" or the like, unpacked into a folder. */
export async function flowWeights(name: string, folder: string): Promise<WeightMap> {
  const path = join(folder, `${name.split("/").at(-1)}.safetensors`);
  writeFileSync(path, goldenBytes(join(FOLDER, `${name}.safetensors`))!);
  return (await openWeightFile({ name, path })).weights;
}
