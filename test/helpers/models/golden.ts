import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../folders.js";
import { goldenBytes } from "../golden-file.js";

/** Whether the tests run over a whole set, whose folder the environment names, or over the repository's part of one. */
export const isWholeSet = process.env.LATENTKIT_GOLDEN_MODELS !== undefined;

/** Folder of the tiny checkpoints and of what the reference makes of them. */
export const goldenModels = (): string => process.env.LATENTKIT_GOLDEN_MODELS ?? join(root, "test/golden/models");

/** Names of the golden models of a kind, such as "checkpoints"; none if there is no such folder. */
export function goldenNames(kind: string): string[] {
  const folders = readdirSync(goldenModels());
  if (!folders.includes(kind)) return [];
  return readdirSync(join(goldenModels(), kind)).map((file) => file.replace(/\.safetensors(\.gz)?$/, ""));
}

/** Unpacks a golden model, "checkpoints/sd1" or the like, into a folder and returns its path there. */
export function unpackModel(name: string, folder: string): string {
  const path = join(folder, `${name.split("/").at(-1)}.safetensors`);
  const bytes = goldenBytes(join(goldenModels(), `${name}.safetensors`));
  if (bytes === undefined) throw new Error(`no golden model ${name}`);
  writeFileSync(path, bytes);
  return path;
}

/** Unpacks all golden models at hand into a models folder. */
export function goldenModelFolder(folder: string): string {
  for (const kind of ["checkpoints", "loras", "vae", "controlnet", "embeddings"]) {
    mkdirSync(join(folder, kind), { recursive: true });
    for (const name of goldenNames(kind)) unpackModel(`${kind}/${name}`, join(folder, kind));
  }
  return folder;
}
