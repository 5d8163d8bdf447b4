import { createHash, randomBytes } from "node:crypto";
import type { GraphKeys } from "./graph-keys.js";
import type { ItemValues } from "./item.js";
import { SEED_INPUTS } from "./seeds.js";

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
export interface DrawnFor {
  /** Id of the batch. */
  readonly batch: string;
  /** Position of the item in the journal. */
  readonly position: number;
}

/** Keys of a batch's values whose seeds are drawn for each item. */
export interface SeedDraw {
  /** Keys of the values that all items share. */
  readonly shared: readonly string[];
  /** An item's values with seeds in place of "random"; the same object where there is none. */
  seedsOf(values: ItemValues, by: DrawnFor): ItemValues;
}

// decision 344
/**
 * Draws the seeds of a batch's items. They follow from the id of the batch and from what tells the item from others, so that
 * the same items have the same seeds when the batch goes on.
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
