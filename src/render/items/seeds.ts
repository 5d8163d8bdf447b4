import { describe, LatentkitError } from "../../base/errors.js";
import { type Axis, type Range, rangeEnds, rangeLength, rangeValues } from "./axis.js";
import type { GraphKeys } from "./graph-keys.js";

/** Inputs that hold a seed, by the names that nodes give them. */
export const SEED_INPUTS: ReadonlySet<string> = new Set(["seed", "noise_seed"]);
const MAX_SEED = 2n ** 64n - 1n;
const PART = /^(\d{1,20})(?:\s*\.\.\s*(\d{1,20}))?$/;
const RANDOM_PART = /^random\s*:\s*(\d{1,15})$/;

/** Seeds as --seeds names them; `isRandom`: numbers of seeds that the batch draws. */
export interface Seeds extends Range {
  readonly isRandom?: boolean;
}

/**
 * Reads "0..999", "5", "1,2,10..20" or "random:50": seeds from 0 to 18446744073709551615. Fails with usage.invalid.
 * @internal
 */
export function parseSeeds(text: string): Seeds[] {
  let drawn = 0n;
  return text.split(",").map((part): Seeds => {
    const [, count] = RANDOM_PART.exec(part.trim()) ?? [];
    if (count !== undefined) {
      if (BigInt(count) === 0n) throw refused("expected random seeds from random:1", part);
      const from = drawn + 1n;
      drawn += BigInt(count);
      return { from, to: drawn, isRandom: true };
    }
    const [, first, last = first] = PART.exec(part.trim()) ?? [];
    if (first === undefined) throw refused("expected seeds such as 0..15, 7, 1,2,10..20 or random:50", part);
    const [from, to] = [BigInt(first), BigInt(last!)];
    if (from > MAX_SEED || to > MAX_SEED) throw refused(`expected seeds up to ${MAX_SEED}`, part);
    if (from > to) throw refused("expected a range that goes up", part);
    return { from, to };
  });
}

const refused = (expected: string, part: string) =>
  new LatentkitError("usage.invalid", `--seeds: ${expected}, received ${describe(part.trim())}.`);

/**
 * Seeds for every input of the graph named seed or noise_seed that is no link, but those that a key of `taken` sets.
 * Fails with usage.invalid where none is left.
 */
export function seedAxis(text: string, keys: GraphKeys, taken: Iterable<string>): Axis {
  const ranges = parseSeeds(text);
  const set = new Set<string>();
  for (const key of taken) {
    const inputs = keys.find(key);
    if (!("reason" in inputs)) for (const { nodeId, input } of inputs) set.add(`${nodeId}.${input}`);
  }
  const all = keys.literals(SEED_INPUTS).map(({ nodeId, input }) => `${nodeId}.${input}`);
  const free = all.filter((key) => !set.has(key));
  if (free.length === 0) {
    const why =
      all.length === 0
        ? "the graph has no input named seed or noise_seed that is no link"
        : `${all.join(" and ")} ${all.length === 1 ? "is" : "are"} set already`;
    throw new LatentkitError("usage.invalid", `--seeds: there is nothing to set; ${why}.`);
  }
  return {
    option: "--seeds",
    keys: free,
    count: ranges.reduce((sum, range) => sum + rangeLength(range), 0n),
    *values() {
      for (const range of ranges) yield* seedsIn(rangeValues(range), range);
    },
    *samples() {
      for (const range of ranges) yield* seedsIn(rangeEnds(range), range);
    },
  };
}

function* seedsIn(numbers: Iterable<number | bigint>, { isRandom = false }: Seeds) {
  for (const number of numbers) yield isRandom ? `random:${number}` : number;
}
