import { execFile } from "node:child_process";
import { createHash, type Hash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packageRoot } from "../../base/package.js";
import { loadNative } from "../../native/load.js";
import { batch } from "../../render/batch/batch.js";
import { render } from "../../render/render.js";
import { randn } from "../../tensor/random.js";
import { SAMPLERS, SCHEDULERS, sigmas } from "../../tensor/sampling/sigmas.js";

const CHILD = fileURLToPath(new URL("./child.js", import.meta.url));
const THREADS = [1, 2, 7];
const LONGEST_MS = 300_000;

/** One way in which this machine can compute, and what it computes otherwise than recorded. */
export interface Comparison {
  readonly isa: string;
  readonly threads: number;
  readonly differing: readonly Subject[];
  /** Why it could not be tried. */
  readonly failure?: string;
}

/** Compares with the recorded hashes, by each instruction set of this machine and with 1, 2 and 7 threads. */
export async function* compare(recorded = HASHES): AsyncGenerator<Comparison> {
  for (const isa of loadNative().isas()) for (const threads of THREADS) yield await compared(isa, threads, recorded);
}

async function compared(isa: string, threads: number, recorded: typeof HASHES): Promise<Comparison> {
  const env = { ...process.env, LATENTKIT_ISA: isa, LATENTKIT_THREADS: String(threads), LATENTKIT_DEVICE: "cpu" };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [CHILD], { env, timeout: LONGEST_MS });
    const hashes = JSON.parse(stdout) as Record<Subject, string>;
    return { isa, threads, differing: SUBJECTS.filter((subject) => hashes[subject] !== recorded[subject]) };
  } catch (error) {
    return { isa, threads, differing: [], failure: (error as Error).message.split("\n")[0]! };
  }
}

/** Subjects that are equal on every machine, in the order in which they are checked. */
export const SUBJECTS = ["noise", "sigmas", "samplers", "example", "batch"] as const;

type Subject = (typeof SUBJECTS)[number];

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

/** SHA-256 of each subject, as every machine computes it. A change of these is a change of pictures: see CHANGELOG.md. */
export const HASHES: Readonly<Record<Subject, string>> = {
  noise: "5738522f0380f1feb8314ed094dfe0187e12801583fc86829dc6022ea3327441",
  sigmas: "256be4bd08817d21196df033d72f7a0e69fdc630d4ad9ab1573408582d6bd102",
  samplers: "3eccba7d22d9734f8049a952c12575fa61e3ba651944a7156c918913c8f216c6",
  example: "22b25ea1c5d1e4b12ea4c0c1eaeb11441541adceeec8c9650e684e8d1b675af0",
  batch: "b2902cc1b5874cc3e8fed81cf8c0f02ae52535b44785b0bdaf8d6a009b63794a",
};
