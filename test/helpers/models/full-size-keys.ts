import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { goldenModels } from "./golden.js";

/** Full-size checkpoints whose keys and shapes are known. */
export type FullSizeFamily = "sd1" | "sd1_inpaint" | "sd2" | "sdxl" | "sdxl_refiner";

const files = JSON.parse(gunzipSync(readFileSync(join(goldenModels(), "keys.json.gz"))).toString()) as Record<
  FullSizeFamily,
  Record<string, number[]>
>;

/** Shapes by key, without the prefix, of one part of a full-size checkpoint. */
export function fullSizeShapes(family: FullSizeFamily, prefix: string): Record<string, number[]> {
  const ofPart = Object.entries(files[family]).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(ofPart.map(([key, shape]) => [key.slice(prefix.length), shape]));
}
