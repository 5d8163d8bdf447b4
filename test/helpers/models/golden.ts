import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { root } from "../folders.js";

/** Folder of the tiny checkpoints and of what the reference makes of them. */
export const goldenModels = (): string => join(root, "test/golden/models");

/** Unpacks a gzipped model, "checkpoints/sd1" or the like, into a folder and returns its path there. */
export function unpackModel(name: string, folder: string): string {
  const path = join(folder, `${name.split("/").at(-1)}.safetensors`);
  writeFileSync(path, gunzipSync(readFileSync(join(goldenModels(), `${name}.safetensors.gz`))));
  return path;
}
