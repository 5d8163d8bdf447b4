import { readFileSync } from "node:fs";
import { randn, type Tensor } from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { readSafetensors } from "#src/io/safetensors/read.js";
import { tinyModels } from "./model-folder.js";
import { type RawTensor, writeWeights } from "./weight-file.js";

/** A host of tiny models for all tests of the block, with its warnings; other folders come after. Call inside `describe`. */
export function tinyHost(more: () => readonly string[] = () => []): () => CheckpointHost & { warnings: string[] } {
  let host: CheckpointHost & { warnings: string[] };
  before(() => {
    const warnings: string[] = [];
    const own = createCheckpointHost({ models: [tinyModels(), ...more()], warn: (text) => warnings.push(text) });
    host = { ...own, warnings };
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
