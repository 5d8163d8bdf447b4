import { join } from "node:path";
import { goldenText } from "../golden-file.js";
import { goldenModels } from "./golden.js";

/** Full-size checkpoints whose keys and shapes are known. */
export type FullSizeFamily = "sd1" | "sd1_inpaint" | "sd2" | "sdxl" | "sdxl_refiner";

const files = JSON.parse(goldenText(join(goldenModels(), "keys.json"))) as Record<
  FullSizeFamily,
  Record<string, number[]>
>;

/** Shapes by key, without the prefix, of one part of a full-size checkpoint. */
export function fullSizeShapes(family: FullSizeFamily, prefix: string): Record<string, number[]> {
  const ofPart = Object.entries(files[family]).filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(ofPart.map(([key, shape]) => [key.slice(prefix.length), shape]));
}
