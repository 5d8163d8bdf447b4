import { join } from "node:path";
import type { ModelHeader } from "#src/host/checkpoint/recognition/part.js";
import type { StoredWeight } from "#src/host/checkpoint/weights/stored.js";
import { goldenText } from "../golden-file.js";
import { goldenModels } from "./golden.js";

/** Shapes of weights by key. */
export type Shapes = Readonly<Record<string, readonly number[]>>;

/** Full-size checkpoints whose keys and shapes are known. */
export type FullSizeFamily = "sd1" | "sd1_inpaint" | "sd2" | "sdxl" | "sdxl_refiner";

/** Keys and shapes of the full-size checkpoints. */
export const fullSizeShapes = (): Readonly<Record<FullSizeFamily, Shapes>> =>
  JSON.parse(goldenText(join(goldenModels(), "keys.json")));

/** A model file that exists by its header alone. */
export const headerOf = (shapes: Shapes, name = "model.safetensors"): ModelHeader => ({
  name,
  metadata: {},
  weights: new Map(
    Object.entries(shapes).map(([key, shape]): [string, StoredWeight] => [
      key,
      { file: name, key, dtype: "F16", shape, from: 0, to: 0 },
    ]),
  ),
});

/** The same shapes under other keys; those that become undefined are left out. */
export const withKeys = (shapes: Shapes, rename: (key: string) => string | undefined): Shapes =>
  Object.fromEntries(
    Object.entries(shapes).flatMap(([key, shape]) => {
      const name = rename(key);
      return name === undefined ? [] : [[name, shape]];
    }),
  );

/** Shapes by key, without the prefix, of one part of a full-size checkpoint. */
export const fullSizePart = (family: FullSizeFamily, prefix: string): Shapes =>
  withKeys(fullSizeShapes()[family], (key) => (key.startsWith(prefix) ? key.slice(prefix.length) : undefined));
