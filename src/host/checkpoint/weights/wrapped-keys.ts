import type { StoredWeight, WeightMap } from "./stored.js";

/** Prefixes that wrap each other. */
const MOST_WRAPPERS = 4;
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
 * Takes off the prefixes that training programs leave before all keys (`module.`, `state_dict.`), as few as let the
 * weights be known, and none where that does not help. Keys without a dot, which are marks and no weights, may lack them.
 */
export function unwrapped(weights: WeightMap, isKnown: (weights: WeightMap) => boolean): UnwrappedWeights {
  const whole = { weights, wrapper: "" };
  let inner: UnwrappedWeights | undefined = whole;
  for (let count = 0; inner !== undefined && count <= MOST_WRAPPERS; count++) {
    if (isKnown(inner.weights)) return inner;
    inner = withoutFirstPart(inner);
  }
  return whole;
}

function withoutFirstPart({ weights, wrapper }: UnwrappedWeights): UnwrappedWeights | undefined {
  let first: string | undefined;
  for (const key of weights.keys()) {
    const dot = key.indexOf(".");
    if (dot < 0) continue;
    first ??= key.slice(0, dot + 1);
    if (!key.startsWith(first)) return undefined;
  }
  if (first === undefined) return undefined;
  const inner = new Map<string, StoredWeight>();
  for (const [key, weight] of weights) inner.set(key.startsWith(first) ? key.slice(first.length) : key, weight);
  return { weights: inner, wrapper: wrapper + first };
}

/** Beginnings of a key that may be a layer's name, the longest first: what is before its last dots and underscores. */
export function beginnings(key: string): string[] {
  const found: string[] = [];
  for (let end = Math.min(key.length, LONGEST_KEY) - 1; end > 0 && found.length < MOST_PARTS; end--)
    if (key[end] === "." || key[end] === "_") found.push(key.slice(0, end));
  return found;
}
