import { execFileSync } from "node:child_process";
import { existsSync, linkSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { randn, type Tensor } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { readSafetensors } from "#src/io/safetensors.js";
import { root, sha256 } from "../folders.js";
import { type RawTensor, writeWeights } from "./weight-file.js";

/** Names of checkpoints in the graphs of test/graphs, and the tiny one that stands for each. */
const STAND_INS = { "preview-sd15": "tiny-sd1", "preview-sdxl": "tiny-sdxl" } as const;

/** A models folder of tiny checkpoints, the same for all tests: made once and kept in build. Only to be read. */
export function tinyModels(): string {
  const script = join(root, "scripts/make-tiny-models.mjs");
  const folder = join(root, "build", `tiny-models-${sha256(readFileSync(script)).slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  // a run that is cut short, or one beside this, leaves nothing half done
  const unfinished = `${folder}-${process.pid}`;
  execFileSync(process.execPath, [script, unfinished]);
  for (const [name, tiny] of Object.entries(STAND_INS)) {
    const path = (file: string) => join(unfinished, "checkpoints", `${file}.safetensors`);
    linkSync(path(tiny), path(name));
  }
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** A host of tiny models for all tests of the block; other folders come after. Call inside `describe`. */
export function tinyHost(more: () => readonly string[] = () => []): () => CheckpointHost {
  let host: CheckpointHost;
  before(() => {
    host = createCheckpointHost({ models: [tinyModels(), ...more()] });
  });
  after(() => host.close());
  return () => host;
}

/** Copies a model file; `rename` names each tensor anew or leaves it out. */
export function copyWeights(from: string, to: string, rename: (key: string) => string | undefined): string {
  const tensors: Record<string, RawTensor> = {};
  for (const [key, { dtype, shape, bytes }] of readSafetensors(readFileSync(from)).tensors) {
    const name = rename(key);
    if (name !== undefined) tensors[name] = { dtype, shape, bytes };
  }
  return writeWeights(to, tensors);
}

/** A context of one prompt, as a text encoder of 64 channels makes it. */
export const someContext = (seed: number, width = 64): Tensor => randn([1, 77, width], { seed });
