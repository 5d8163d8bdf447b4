import { copyFileSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { goldenNames, unpackModel } from "./golden.js";
import { tinyModels } from "./tiny-host.js";

/** Puts a golden model, "checkpoints/sd1_fp8" or the like, or a tiny one ("checkpoints/tiny-sd1") into a folder. */
export function modelFile(name: string, folder: string): string {
  const isGolden = goldenNames(dirname(name)).includes(basename(name));
  if (isGolden) return unpackModel(name, folder);
  const path = join(folder, `${basename(name)}.safetensors`);
  copyFileSync(join(tinyModels(), `${name}.safetensors`), path);
  return path;
}

/** Fills a new `models` folder in a folder with golden and tiny models, and returns its path. */
export function modelsFolder(folder: string, ...names: readonly string[]): string {
  const models = join(folder, "models");
  for (const name of names) {
    mkdirSync(join(models, dirname(name)), { recursive: true });
    modelFile(name, join(models, dirname(name)));
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
