import type { StoredWeight, WeightMap } from "../weights/stored.js";

/** Beginning of a key in a file, and the one that stands for it in LDM keys. */
export type Rename = readonly [from: string, to: string];

/** Weights under LDM keys, and the names that those keys have in the file. */
export interface RenamedWeights {
  readonly weights: WeightMap;
  nameInFile(key: string): string;
}

/** Replaces the beginnings of keys; those without a rename keep their names. `prefix` stands before each in the file. */
export function renamed(weights: WeightMap, renames: readonly Rename[], prefix: string): RenamedWeights {
  const byDot = new Map(renames);
  const names = new Map<string, string>();
  const result = new Map<string, StoredWeight>();
  for (const [key, weight] of weights) {
    const name = rename(key, byDot);
    result.set(name, weight);
    names.set(name, key);
  }
  const backwards = new Map(renames.map(([from, to]) => [to, from]));
  return { weights: result, nameInFile: (key) => prefix + (names.get(key) ?? rename(key, backwards)) };
}

/** Longer than every beginning that has a rename. */
const LONGEST_BEGINNING = 96;

/** Tries the beginnings of a key that end with a dot, the longest first. */
function rename(key: string, renames: ReadonlyMap<string, string>): string {
  for (
    let dot = key.lastIndexOf(".", LONGEST_BEGINNING);
    dot >= 0;
    dot = dot === 0 ? -1 : key.lastIndexOf(".", dot - 1)
  ) {
    const to = renames.get(key.slice(0, dot + 1));
    if (to !== undefined) return to + key.slice(dot + 1);
  }
  return key;
}
