import { createHash, type Hash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../../base/package.js";
import { batch } from "../../render/batch/batch.js";
import { render } from "../../render/render.js";
import { randn } from "../../tensor/random.js";
import { SAMPLERS, SCHEDULERS, sigmas } from "../../tensor/sampling/sigmas.js";

/** Subjects that are equal on every machine, in the order in which they are checked. */
export const SUBJECTS = ["noise", "sigmas", "samplers", "example", "batch"] as const;

export type Subject = (typeof SUBJECTS)[number];

const SEEDS = [0n, 42n, 2n ** 63n, 2n ** 64n - 1n];
const SHAPES = [[1, 4, 64, 64], [2, 4, 8, 8], [1, 16, 33, 17], [15], [1, 3, 5]];
const MODELS = ["sd15", "sd21-v-zsnr", "sdxl", "svd", "sd3", "flux"] as const;
const ITEMS = 200;

const example = (name: string): string => join(packageRoot, "examples", name);

/** Returns the SHA-256 of each subject as this process computes it. */
export async function measure(): Promise<Record<Subject, string>> {
  const [samplers, firstLight, items] = [await samplersHash(), await exampleHash(), await batchHash()];
  return { noise: noiseHash(), sigmas: sigmasHash(), samplers, example: firstLight, batch: items };
}

/** 40 tensors of noise. */
function noiseHash(): string {
  const hash = createHash("sha256");
  for (const source of ["CPU", "GPU"] as const)
    for (const seed of SEEDS) for (const shape of SHAPES) addNumbers(hash, randn(shape, { seed, source }).data);
  return hash.digest("hex");
}

function sigmasHash(): string {
  const hash = createHash("sha256");
  for (const model of MODELS)
    for (const scheduler of SCHEDULERS)
      for (const steps of [1, 7, 20]) addNumbers(hash, sigmas({ model, scheduler, steps }));
  return hash.digest("hex");
}

/** A small picture by each sampler. */
async function samplersHash(): Promise<string> {
  const hash = createHash("sha256");
  for (const sampler of SAMPLERS) {
    const set = { "4.width": 64, "4.height": 64, "5.steps": 4, "5.sampler_name": sampler };
    hash.update(await pictures("text-to-image.json", { set }));
  }
  return hash.digest("hex");
}

const exampleHash = async (): Promise<string> =>
  createHash("sha256")
    .update(await pictures("first-light.json", { targets: ["11", "18", "19", "20"] }))
    .digest("hex");

/** Bytes of the pictures of an example, without texts: those name the version. */
async function pictures(name: string, options: { set?: object; targets?: string[] }): Promise<Buffer> {
  const { files } = await render(example(name), { ...options, output: "memory", metadata: "none" } as never);
  return Buffer.concat(files.map(({ bytes }) => bytes!));
}

/** The files of a batch by their names. */
async function batchHash(): Promise<string> {
  const outputDir = await mkdtemp(join(tmpdir(), "latentkit-"));
  try {
    const items = Array.from({ length: ITEMS }, (_, i) => ({ "3.seed": i }));
    for await (const _ of batch(example("noise.json"), items, { outputDir, metadata: "none" }));
    const hash = createHash("sha256");
    for (const name of (await readdir(outputDir)).sort())
      hash.update(name).update(await readFile(join(outputDir, name)));
    return hash.digest("hex");
  } finally {
    await rm(outputDir, { recursive: true });
  }
}

const addNumbers = (hash: Hash, { buffer, byteOffset, byteLength }: Float32Array): Hash =>
  hash.update(new Uint8Array(buffer, byteOffset, byteLength));
