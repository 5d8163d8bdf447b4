import type { StoredWeight, WeightMap } from "./stored.js";

/** Prefixes that wrap each other. */
const MOST_WRAPPERS = 4;
/** Prefixes that stand before a part of the keys too, as a file has those of an optimizer or of other networks beside them. */
const TRAINING = ["module.", "state_dict.", "model_state_dict."];
/** Mark of a network that PyTorch has compiled, at any place of a key. */
const COMPILED = "_orig_mod.";
/** Longer keys have no layer in a network. */
const LONGEST_KEY = 160;
/** Parts behind a layer's name: `weight.quant_state.bitsandbytes__nf4` has six. */
const MOST_PARTS = 8;

/** Weights without what stands before all keys of their file. */
export interface UnwrappedWeights {
  readonly weights: WeightMap;
  readonly wrapper: string;
}

/**
 * Takes off the prefixes that training programs leave before all keys (`net.`), or before those of the weights (`module.`,
 * `state_dict.`), as few as let the weights be known, and none where that does not help. Keys without a dot, which are
 * marks and no weights, may lack them. `_orig_mod.` is taken off everywhere.
 */
export function unwrapped(weights: WeightMap, isKnown: (weights: WeightMap) => boolean): UnwrappedWeights {
  const whole = { weights: withoutMark(weights), wrapper: "" };
  let inner: UnwrappedWeights | undefined = whole;
  for (let count = 0; inner !== undefined && count <= MOST_WRAPPERS; count++) {
    if (isKnown(inner.weights)) return inner;
    inner = withoutFirstPart(inner);
  }
  return whole;
}

function withoutMark(weights: WeightMap): WeightMap {
  if (![...weights.keys()].some((key) => key.includes(COMPILED))) return weights;
  return renamed(weights, (key) => key.replace(/(^|\.)_orig_mod\./g, "$1")) ?? weights;
}

function withoutFirstPart({ weights, wrapper }: UnwrappedWeights): UnwrappedWeights | undefined {
  const first = firstPart(weights);
  if (first === undefined) return undefined;
  const inner = renamed(weights, (key) => (key.startsWith(first) ? key.slice(first.length) : key));
  return inner && { weights: inner, wrapper: wrapper + first };
}

/** Prefix of all keys with a dot, or one that training programs leave before some of them. */
function firstPart(weights: WeightMap): string | undefined {
  const dotted = [...weights.keys()].filter((key) => key.includes("."));
  const [key] = dotted;
  if (key === undefined) return undefined;
  const first = key.slice(0, key.indexOf(".") + 1);
  if (dotted.every((other) => other.startsWith(first))) return first;
  return TRAINING.find((prefix) => dotted.some((other) => other.startsWith(prefix)));
}

/** Weights under other keys; undefined where two would have one. */
function renamed(weights: WeightMap, rename: (key: string) => string): WeightMap | undefined {
  const result = new Map<string, StoredWeight>();
  for (const [key, weight] of weights) result.set(rename(key), weight);
  return result.size === weights.size ? result : undefined;
}

/** Beginnings of a key that may be a layer's name, the longest first: what is before its last dots and underscores. */
export function beginnings(key: string): string[] {
  const found: string[] = [];
  for (let end = Math.min(key.length, LONGEST_KEY) - 1; end > 0 && found.length < MOST_PARTS; end--)
    if (key[end] === "." || key[end] === "_") found.push(key.slice(0, end));
  return found;
}
