import { describe, LatentkitError } from "../../../../base/errors.js";
import type { StoredWeight, WeightFile, WeightMap } from "../stored.js";
import { readKey, type TensorRole } from "./keys.js";

/** Reads the values of a weight of few numbers. */
export type ReadValues = (weight: StoredWeight) => Promise<Float32Array>;

/** A tensor of a LoRA file under its full key. */
export interface LoraTensor {
  readonly key: string;
  readonly weight: StoredWeight;
}

/** All that a LoRA file holds for one layer of a network. */
export interface LoraModule {
  readonly tensors: ReadonlyMap<TensorRole, LoraTensor>;
  /** Numerator of the factor alpha / rank. Absent: the factor is 1. */
  readonly alpha?: number;
}

/** A LoRA file by layers, in the names of its own style. */
export interface LoraFile {
  readonly path: string;
  readonly modules: ReadonlyMap<string, LoraModule>;
  /** Textual inversions that are bundled with it, by name: the tensors of each under the keys of an embedding's file. */
  readonly embeddings: ReadonlyMap<string, WeightMap>;
  /** Keys that belong to no known form of LoRA. */
  readonly unknown: readonly string[];
}

const BUNDLED = "bundle_emb.";
const PARAMETERS = ".string_to_param.";

/**
 * Sorts the tensors of a LoRA file by layer and reads the alphas, no other values. Throws model.invalid for an alpha that
 * is no finite number, and as `read`.
 */
export async function readLora({ path, weights }: WeightFile, read: ReadValues): Promise<LoraFile> {
  const tensors = new Map<string, Map<TensorRole, LoraTensor>>();
  const embeddings = new Map<string, Map<string, StoredWeight>>();
  const unknown: string[] = [];
  for (const [key, weight] of weights) {
    const parts = key.startsWith(BUNDLED) ? bundledParts(key) : readKey(key);
    if (parts === undefined) unknown.push(key);
    else if ("role" in parts) entryOf(tensors, parts.module).set(parts.role, { key, weight });
    else entryOf(embeddings, parts.embedding).set(parts.key, weight);
  }
  const modules = new Map<string, LoraModule>();
  for (const [name, ofModule] of tensors) {
    const alpha = ofModule.get("alpha");
    modules.set(name, { tensors: ofModule, ...(alpha !== undefined && { alpha: await readAlpha(path, alpha, read) }) });
  }
  return { path, modules, embeddings, unknown };
}

/** Name and key of a bundled embedding: `bundle_emb.NAME.string_to_param.*`, or `bundle_emb.NAME.clip_l`. */
function bundledParts(key: string): { embedding: string; key: string } | undefined {
  const parameters = key.indexOf(PARAMETERS, BUNDLED.length);
  const end = parameters < 0 ? key.lastIndexOf(".") : parameters;
  if (end <= BUNDLED.length) return undefined;
  return { embedding: key.slice(BUNDLED.length, end), key: key.slice(end + 1) };
}

async function readAlpha(path: string, { key, weight }: LoraTensor, read: ReadValues): Promise<number> {
  const subject = `LoRA ${describe(path)}: alpha ${describe(key)}`;
  const count = weight.shape.reduce((product, side) => product * side, 1);
  if (count !== 1) throw new LatentkitError("model.invalid", `${subject}: expected one number, received ${count}.`);
  const alpha = (await read(weight))[0]!;
  if (Number.isFinite(alpha)) return alpha;
  throw new LatentkitError("model.invalid", `${subject}: expected a finite number, received ${alpha}.`);
}

function entryOf<Key, Value>(maps: Map<string, Map<Key, Value>>, name: string): Map<Key, Value> {
  const known = maps.get(name);
  if (known !== undefined) return known;
  const made = new Map<Key, Value>();
  maps.set(name, made);
  return made;
}
