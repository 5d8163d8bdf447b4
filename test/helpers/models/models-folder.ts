import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { goldenModels, unpackModel } from "./golden.js";

/** Fills a new `models` folder in a folder with golden models, "checkpoints/sd1_fp8" or the like, and returns its path. */
export function modelsFolder(folder: string, ...names: readonly string[]): string {
  const models = join(folder, "models");
  for (const name of names) {
    const [kind, file] = name.split("/") as [string, string];
    mkdirSync(join(models, kind), { recursive: true });
    // small ones are not packed
    if (kind === "loras" || kind === "embeddings")
      copyFileSync(join(goldenModels(), `${name}.safetensors`), join(models, kind, `${file}.safetensors`));
    else unpackModel(name, join(models, kind));
  }
  return models;
}

/** Has this process keep hashes of models below a folder, instead of the user's, during each test of the block. */
export function ownCacheFolder(folder: () => string): void {
  const { LATENTKIT_CACHE_DIR: previous } = process.env;
  beforeEach(() => {
    process.env.LATENTKIT_CACHE_DIR = join(folder(), "cache");
  });
  afterEach(() => {
    if (previous === undefined) delete process.env.LATENTKIT_CACHE_DIR;
    else process.env.LATENTKIT_CACHE_DIR = previous;
  });
}
