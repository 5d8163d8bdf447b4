import type { StoredWeight, WeightMap } from "../stored.js";
import type { LoraKey } from "./keys.js";

// A Control LoRA of Flux: it lets the model take a picture beside the latent, and has norms and biases of its own.

const DOWN = "img_in.lora_A.weight";
const BIAS = ".lora_B.bias";
const NORM = /^(.+\.norm\.(?:query|key)_norm)\.scale$/;
const INPUT = "img_in.weight";

/** Numbers of a patch that a model takes with the Control LoRA of a file; undefined for other LoRAs. */
export function controlInputs(weights: WeightMap): number | undefined {
  const isControl = weights.has(DOWN) && [...weights.keys()].some((key) => NORM.test(key));
  return isControl ? weights.get(DOWN)!.shape[1] : undefined;
}

/** Layer and role of a tensor that only a Control LoRA has. */
export function readControlKey(key: string): LoraKey | undefined {
  if (key.endsWith(BIAS)) return { module: key.slice(0, -BIAS.length), role: "diff_b" };
  const [, norm] = NORM.exec(key) ?? [];
  return norm === undefined ? undefined : { module: norm, role: "replacement" };
}

/** Weights of a Flux transformer that takes so many numbers of a patch: zeros for those that it did not take before. */
export function takingInputs(weights: WeightMap, inputs: number): WeightMap {
  const weight = weights.get(INPUT);
  const [rows, columns] = weight?.shape ?? [];
  if (weight === undefined || rows === undefined || columns === undefined || columns >= inputs) return weights;
  const widened: StoredWeight = { ...weight, shape: [rows, inputs], storedColumns: weight.storedColumns ?? columns };
  return new Map([...weights, [INPUT, widened]]);
}
