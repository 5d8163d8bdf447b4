import { createHash, randomBytes } from "node:crypto";
import { describe, LatentkitError } from "../../base/errors.js";
import { SEED_INPUTS } from "../../graph/parse.js";
import { type Axis, type Range, rangeEnds, rangeLength, rangeValues } from "./axes.js";
import type { GraphKeys } from "./graph-keys.js";
import type { ItemValues } from "./item.js";

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
 * Seeds for every input of the graph named seed or noise_seed that is not a link, except those that a key of `taken`
 * sets. Fails with usage.invalid if none is left.
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
        ? "the graph has no seed or noise_seed with its own value"
        : `${all.join(" and ")} ${all.length === 1 ? "is" : "are"} already set`;
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

/** In place of a seed: "random" draws one for each item, "random:3" the third of those that all items share. */
const RANDOM = /^random(?::([1-9]\d{0,14}))?$/;
/** Digits that spreadsheets and JavaScript keep: 15. */
const SEED_BYTES = 6;

export const isRandom = (value: unknown): boolean => typeof value === "string" && RANDOM.test(value);

/** Whether a value stands for a seed that is drawn. */
export function isRandomSeed(keys: GraphKeys, key: string, value: unknown): boolean {
  const inputs = isRandom(value) ? keys.find(key) : [];
  return !("reason" in inputs) && inputs.some(({ input, isSeed }) => isSeed || SEED_INPUTS.has(input));
}

/** A seed from the system's randomness, of at most 15 digits. */
export const randomSeed = (): number => randomBytes(SEED_BYTES).readUIntBE(0, SEED_BYTES);

/** Facts that an item's seeds are drawn from. */
interface DrawnFor {
  /** Id of the batch. */
  readonly batch: string;
  /** Position of the item in the journal. */
  readonly position: number;
}

/** Keys of a batch's values whose seeds are drawn for each item. */
export interface SeedDraw {
  /** Keys of the values that all items share. */
  readonly shared: readonly string[];
  /** An item's values with seeds in place of "random"; the same object if there is none. */
  seedsOf(values: ItemValues, by: DrawnFor): ItemValues;
}

// 48 bits, at most 15 digits, which JavaScript and spreadsheets keep.
/**
 * Draws the seeds of a batch's items. They are derived from the batch's id and from what distinguishes the item, so that
 * the same items have the same seeds when the batch continues.
 */
export function createSeedDraw(keys: GraphKeys, set: ItemValues): SeedDraw {
  const isDrawn = (values: ItemValues) => (key: string) => isRandomSeed(keys, key, values[key]);
  const shared = Object.keys(set).filter(isDrawn(set));
  return {
    shared,
    seedsOf(values, { batch, position }) {
      const own = Object.keys(values).filter(isDrawn(values));
      const others = shared.filter((key) => !Object.hasOwn(values, key));
      if (own.length === 0 && others.length === 0) return values;
      const drawn: Record<string, unknown> = { ...values };
      for (const key of [...own, ...others]) {
        const text = String(Object.hasOwn(values, key) ? values[key] : set[key]);
        const number = RANDOM.exec(text)![1];
        drawn[key] = seedFrom(number === undefined ? `${batch} item ${position} ${key}` : `${batch} seed ${number}`);
      }
      return drawn;
    },
  };
}

const seedFrom = (text: string): number => createHash("sha256").update(text).digest().readUIntBE(0, SEED_BYTES);
