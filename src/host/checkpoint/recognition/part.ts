import type { LatentkitError } from "../../../base/errors.js";
import { hasFittingFactor, listedNetwork, type Network } from "../weights/network.js";
import {
  invalid,
  isPacked,
  quotedName,
  type StoredWeight,
  unsupported,
  valuesIn,
  type WeightFile,
  type WeightMap,
} from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";

/** A model file as recognition sees it: keys and shapes. */
export interface ModelHeader extends Pick<WeightFile, "name" | "metadata" | "weights"> {
  /** Prefix of all keys in the file, which is absent here. */
  readonly wrapper?: string;
}

/** One network of a checkpoint: its sizes, and its weights by the keys of its builder. */
export interface Part<Config> {
  readonly config: Config;
  readonly weights: WeightMap;
}

/** Bound of every side that a size of a network is read from; the longest in use is a vocabulary of 49,408. */
const LONGEST_SIDE = 2 ** 20;
/** Digits of a block's number. */
const MOST_DIGITS = 4;

const FLOATS: ReadonlySet<string> = new Set(["F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"]);

/** Prefixes of a transformer's keys, those of whole checkpoints first. */
export const TRANSFORMER_PREFIXES = ["model.diffusion_model.", "diffusion_model.", "model.", "transformer.", ""];

/** Gives a key of a part its name in the file. */
export type NameInFile = (key: string) => string;

/** Weights of a file below a prefix, without it. */
export function below(weights: WeightMap, prefix: string): Map<string, StoredWeight> {
  const found = new Map<string, StoredWeight>();
  for (const [key, weight] of weights) if (key.startsWith(prefix)) found.set(key.slice(prefix.length), weight);
  return found;
}

/** The file without the prefix of all its keys, if it is recognised without: see unwrapped. */
export function unwrappedFile(file: ModelHeader, isKnown: (weights: WeightMap) => boolean): ModelHeader {
  return { ...file, ...unwrapped(file.weights, isKnown) };
}

/** Reads the sizes of one network from the shapes of its weights. Its errors name the file and the key. */
export class PartShapes {
  readonly file: ModelHeader;
  readonly weights: WeightMap;
  readonly #nameInFile: NameInFile;

  constructor(file: ModelHeader, weights: WeightMap, nameInFile: NameInFile) {
    this.file = file;
    this.weights = weights;
    this.#nameInFile = nameInFile;
  }

  has(key: string): boolean {
    return this.weights.has(key);
  }

  /**
   * Sides of a weight of that rank. Throws model.invalid if it is absent or has an empty or overlong side,
   * model.unsupported for a packed one.
   */
  sides(key: string, rank: number): readonly number[] {
    const shape = this.weights.get(key)?.shape;
    if (shape?.length === rank && shape.every((side) => side > 0 && side <= LONGEST_SIDE)) return shape;
    if (shape === undefined) this.#refusePacked([key], `weight ${this.#name(key)}`);
    throw this.invalid(`weight ${this.#name(key)} of ${rank} sides`, sidesOf(shape));
  }

  /** One more than the largest number N of keys that begin with `prefix`, N and a dot. Throws model.invalid above `most`. */
  count(prefix: string, most: number): number {
    let count = 0;
    for (const key of this.weights.keys()) {
      if (!key.startsWith(prefix)) continue;
      const number = numberAt(key, prefix.length);
      if (number !== undefined) count = Math.max(count, number + 1);
    }
    if (count <= most) return count;
    throw this.invalid(`at most ${most} blocks ${this.#name(prefix)}`, `${count}`);
  }

  /**
   * The weights that a builder asks for. Throws model.invalid for an absent key, another shape, numbers other than
   * floats and a factor that does not fit; model.unsupported for a further weight below one of `roots`, and for a tensor
   * beside one of the builder's weights, as packed weights have them.
   */
  check(build: (network: Network) => void, roots: readonly string[], expected: string): WeightMap {
    const network = listedNetwork();
    build(network);
    const { listed } = network;
    const used = new Map<string, StoredWeight>();
    this.#refusePacked(listed.keys(), expected, "one with ");
    for (const [key, shape] of listed) {
      const stored = this.weights.get(key);
      const matches = stored?.shape.length === shape.length && shape.every((side, axis) => stored.shape[axis] === side);
      if (!matches)
        throw this.invalid(`weight ${this.#name(key)} of shape [${shape.join(", ")}]`, sidesOf(stored?.shape));
      for (const part of stored.parts ?? [stored]) this.#checkValues(part);
      used.set(key, stored);
    }
    for (const key of this.weights.keys()) {
      if (listed.has(key) || !isWeight(key) || !roots.some((root) => key.startsWith(root))) continue;
      throw unsupported(this.file.name, expected, `one with the unknown weight ${this.#name(key)}`);
    }
    return used;
  }

  invalid(expected: string, received: string): LatentkitError {
    return invalid(this.file.name, expected, received);
  }

  /** Throws model.unsupported for a key beside a weight, which changes what its values mean: an offset, a table, packed bits. */
  #refusePacked(keys: Iterable<string>, expected: string, article = ""): void {
    const known = new Set(keys);
    const layers = new Set([...known].map((key) => key.replace(/[._](?:weight|bias)$/, "")));
    for (const key of this.weights.keys()) {
      if (known.has(key) || isWeight(key) || !beginnings(key).some((beginning) => layers.has(beginning))) continue;
      const received = `${article}${this.#name(key)}, which changes a weight in a way that latentkit does not support`;
      throw unsupported(this.file.name, expected, received);
    }
  }

  #checkValues(stored: StoredWeight): void {
    const { dtype, factor, key } = stored;
    if (!FLOATS.has(dtype) && !isPacked(dtype)) throw this.invalid(`weight ${quotedName(key)} of floats`, dtype);
    if (factor === undefined || (hasFittingFactor(stored) && FLOATS.has(factor.dtype))) return;
    throw this.invalid(
      `${quotedName(factor.key)} of floats, one or one for each row`,
      `${factor.dtype} ${sidesOf(factor.shape)} for a weight ${sidesOf(stored.shape)}`,
    );
  }

  #name(key: string): string {
    return quotedName(this.weights.get(key)?.key ?? (this.file.wrapper ?? "") + this.#nameInFile(key));
  }
}

/** The number of a file's mark. Throws model.invalid for anything but one number, and as `read`. */
export async function numberOf(name: string, weight: StoredWeight, read: ReadValues): Promise<number> {
  const size = valuesIn(weight.shape);
  const value = size === 1 ? (await read(weight))[0]! : Number.NaN;
  if (Number.isFinite(value)) return value;
  throw invalid(name, `${quotedName(weight.key)} of one finite number`, size === 1 ? `${value}` : `${size} of them`);
}

/** Whether a network would compute with it: statistics and factors of 8-bit weights have other names. */
const isWeight = (key: string): boolean => key.endsWith(".weight") || key.endsWith(".bias");

const sidesOf = (shape: readonly number[] | undefined): string =>
  shape === undefined ? "none" : `[${shape.slice(0, 8).join(", ")}${shape.length > 8 ? ", …" : ""}]`;

/** The number without leading zeros that begins there and ends with a dot. */
function numberAt(key: string, from: number): number | undefined {
  const end = key.indexOf(".", from);
  const digits = end - from;
  if (digits < 1 || digits > MOST_DIGITS || (digits > 1 && key[from] === "0")) return undefined;
  let number = 0;
  for (let i = from; i < end; i++) {
    const digit = key.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return undefined;
    number = 10 * number + digit;
  }
  return number;
}

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

/** Prefixes that wrap each other. */
const MOST_WRAPPERS = 4;
/** Prefixes that stand before a part of the keys too, as a file has those of an optimizer or of other networks beside them. */
const TRAINING = ["module.", "state_dict.", "model_state_dict."];
/** Mark of a network that PyTorch has compiled, at any place of a key. */
const COMPILED = "_orig_mod.";
/** Longer keys do not belong to a layer. */
const LONGEST_KEY = 160;
/** Parts behind a layer's name: `weight.quant_state.bitsandbytes__nf4` has six. */
const MOST_PARTS = 8;

/** Weights without the prefix of all keys of their file. */
export interface UnwrappedWeights {
  readonly weights: WeightMap;
  readonly wrapper: string;
}

/**
 * Takes off the prefixes that training programs leave before all keys (`net.`), or before those of the weights (`module.`,
 * `state_dict.`), as few as let the weights be known, and none if that does not help. Keys without a dot, which are
 * marks rather than weights, may lack them. `_orig_mod.` is taken off everywhere.
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
  return withOtherKeys(weights, (key) => key.replace(/(^|\.)_orig_mod\./g, "$1")) ?? weights;
}

function withoutFirstPart({ weights, wrapper }: UnwrappedWeights): UnwrappedWeights | undefined {
  const first = firstPart(weights);
  if (first === undefined) return undefined;
  const inner = withOtherKeys(weights, (key) => (key.startsWith(first) ? key.slice(first.length) : key));
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

/** Weights under other keys; undefined if two would have one. */
function withOtherKeys(weights: WeightMap, rename: (key: string) => string): WeightMap | undefined {
  const result = new Map<string, StoredWeight>();
  for (const [key, weight] of weights) result.set(rename(key), weight);
  return result.size === weights.size ? result : undefined;
}

/** Beginnings of a key that may be a layer's name, the longest first: the text before its last dots and underscores. */
export function beginnings(key: string): string[] {
  const found: string[] = [];
  for (let end = Math.min(key.length, LONGEST_KEY) - 1; end > 0 && found.length < MOST_PARTS; end--)
    if (key[end] === "." || key[end] === "_") found.push(key.slice(0, end));
  return found;
}
