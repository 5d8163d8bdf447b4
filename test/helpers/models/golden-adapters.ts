import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng, type Tensor } from "latentkit";
import { openWeightFile, type WeightFile } from "#src/host/checkpoint/weights/stored.js";
import { imageTensor } from "#src/io/png/png.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { firstChannels } from "#src/tensor/channels.js";
import { root } from "../folders.js";
import { goldenBytes, goldenText } from "../golden-file.js";
import { goldenModels, goldenNames, isWholeSet, unpackModel } from "./golden.js";
import { unpackFolders } from "./golden-graphs.js";

/** Tiny CLIP vision encoders, IPAdapters and control nets, and what the reference makes of them. */
export const ADAPTERS_FOLDER = isWholeSet
  ? join(goldenModels(), "../models-adapters")
  : join(root, "test/golden/models-adapters");

/** The vectors of all modules; strings name tensors. */
export interface AdapterLayers {
  // biome-ignore lint/suspicious/noExplicitAny: each module has fields of its own
  readonly [module: string]: any;
  tensor(name: string): Tensor;
}

export function adapterLayers(): AdapterLayers {
  const path = join(ADAPTERS_FOLDER, "layers");
  const { tensors } = readSafetensors(goldenBytes(`${path}.safetensors`)!);
  return { ...JSON.parse(goldenText(`${path}.json`)), tensor: (key: string) => toTensor(tensors.get(key)!) };
}

/** A golden file, "clip_vision/clip_vit_l_14.safetensors" or the like, unpacked into a folder. */
export function adapterFile(name: string, folder: string): Promise<WeightFile> {
  const path = join(folder, name.split("/").at(-1)!);
  writeFileSync(path, goldenBytes(join(ADAPTERS_FOLDER, name))!);
  return openWeightFile({ name, path });
}

/** Puts all golden adapters into a folder, with the checkpoints and LoRAs of other sets that graphs use, and the pictures of both. */
export function unpackAdapters(folder: string): void {
  unpackFolders(ADAPTERS_FOLDER, ["clip_vision", "ipadapter", "controlnet"], folder);
  for (const kind of ["checkpoints", "loras"]) {
    mkdirSync(join(folder, kind), { recursive: true });
    for (const name of goldenNames(kind))
      if (name.startsWith("sd1") || name.startsWith("sdxl")) unpackModel(`${kind}/${name}`, join(folder, kind));
  }
}

/** Puts the pictures of the set and of another one into a folder, and returns its path. */
export function adapterPictures(folder: string): string {
  for (const from of [join(goldenModels(), "input"), join(ADAPTERS_FOLDER, "input")])
    cpSync(from, folder, { recursive: true });
  return folder;
}

/** A golden picture [1, H, W, 3]; those of other sets too. */
export async function adapterPicture(name: string): Promise<Tensor> {
  for (const folder of [ADAPTERS_FOLDER, goldenModels()]) {
    try {
      return firstChannels(imageTensor(await decodePng(readFileSync(join(folder, "input", name)))), 3);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`no golden picture ${name}`);
}

/** Every `step`-th row and column of a picture [B, H, W, C] or planes whose sides begin at an axis. */
export function sampled({ data, shape }: Tensor, axis: number, step: number): number[] {
  const [height, width] = [shape[axis]!, shape[axis + 1]!];
  const inner = shape.slice(axis + 2).reduce((product, side) => product * side, 1);
  const outer = shape.slice(0, axis).reduce((product, side) => product * side, 1);
  const values: number[] = [];
  for (let o = 0; o < outer; o++)
    for (let y = 0; y < height; y += step)
      for (let x = 0; x < width; x += step)
        for (let k = 0; k < inner; k++) values.push(data[((o * height + y) * width + x) * inner + k]!);
  return values;
}
