import { BLOCK_TYPES } from "#src/host/checkpoint/weights/stored.js";
import { any, changed, MOST_BYTES, otherFamily, otherKey, otherSides } from "./damaged-file.mjs";

/**
 * A tensor of a GGUF file; sides as in PyTorch, bytes of sound ones.
 *
 * @typedef {{ name: string, type: number, sides: any[], offset: number | bigint, bytes: Uint8Array }} Tensor
 */
/** A pair: key, type of its value, and its bytes. @typedef {{ key: string, type: number, bytes: Uint8Array }} Pair */

const ALIGNMENT = 32;
const [U32, TEXT, LIST] = [4, 8, 9];
/** Bytes of a value of the other types. */
const SINGLE = { 0: 4, 1: 2, 24: 1, 26: 4, 27: 8, 28: 8, 30: 2 };
/** Values and bytes of a block, by type. @type {Map<number, { values: number, bytes: number }>} */
const BLOCKS = new Map();
for (const [id, bytes] of Object.entries(SINGLE)) BLOCKS.set(Number(id), { values: 1, bytes });
for (const type of Object.values(BLOCK_TYPES)) BLOCKS.set(type.id, type);
const STRANGE_NUMBERS = [
  0n,
  1n,
  3n,
  31n,
  33n,
  256n,
  2n ** 20n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 1n,
];

export const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(Number(BigInt.asUintN(32, BigInt(value))));
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
};
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
const list = (type, items) => Buffer.concat([u32(type), u64(items.length), ...items]);

/** Pairs as files have them. @type {(key: string, value: string) => Pair} */
export const textPair = (key, value) => ({ key, type: TEXT, bytes: text(value) });
/** @type {(key: string, values: readonly string[]) => Pair} */
export const textsPair = (key, values) => ({ key, type: LIST, bytes: list(TEXT, values.map(text)) });
/** @type {(key: string, values: readonly number[]) => Pair} */
export const numbersPair = (key, values) => ({ key, type: LIST, bytes: list(U32, values.map(u32)) });
/** @type {(key: string, value: number) => Pair} */
export const numberPair = (key, value) => ({ key, type: U32, bytes: u32(value) });

/**
 * A GGUF file of these pairs and tensors, whose offsets are given here.
 *
 * @param {string} name
 * @param {Pair[]} pairs
 * @param {Tensor[]} tensors
 * @returns {import("./damaged-file.mjs").Sample}
 */
export function ggufSample(name, pairs, tensors) {
  const counts = { version: 3, tensors: tensors.length, pairs: pairs.length };
  const end = laidOut(tensors);
  const header = encoded(counts, pairs, tensors);
  const data = Buffer.alloc(end);
  for (const { offset, bytes } of tensors) data.set(bytes, Number(offset));
  // not in the loop of changes, which clones what it changes
  const light = tensors.map(({ bytes: _, ...tensor }) => tensor);
  return {
    name,
    bytes: Buffer.concat([header, data]),
    start: header.length,
    rewritten(next) {
      const contents = structuredClone({ pairs, tensors: light });
      const counted = next(8) === 0 ? undefined : counts;
      const how = changed(next, () => damage(contents, next));
      const isSound = next(4) > 0;
      const length = isSound ? laidOut(contents.tensors) : end;
      const numbers = counted === undefined ? strangeCounts(counts, next) : countsOf(contents);
      const told = [how, ...(isSound ? ["laid out anew"] : []), ...(counted === undefined ? ["other counts"] : [])];
      return { header: encoded(numbers, contents.pairs, contents.tensors), end: length, how: told.join(", ") };
    },
  };
}

const countsOf = ({ pairs, tensors }) => ({ version: 3, tensors: tensors.length, pairs: pairs.length });

function strangeCounts(counts, next) {
  const key = any(Object.keys(counts), next);
  return { ...counts, [key]: any([...STRANGE_NUMBERS, BigInt(counts[key]) - 1n, BigInt(counts[key]) + 1n], next) };
}

function encoded(counts, pairs, tensors) {
  const header = [Buffer.from("GGUF"), u32(counts.version), u64(counts.tensors), u64(counts.pairs)];
  for (const { key, type, bytes } of pairs) header.push(text(key), u32(type), bytes);
  for (const { name, type, sides, offset } of tensors)
    header.push(text(name), u32(sides.length), ...sides.toReversed().map(u64), u32(type), u64(offset));
  const whole = Buffer.concat(header);
  return Buffer.concat([whole, Buffer.alloc(padded(whole.length) - whole.length)]);
}

/** Changes one tensor or pair, and tells how. */
function damage({ pairs, tensors }, next) {
  if (next(4) === 0) return damagePair(pairs, tensors, next);
  const at = next(tensors.length);
  const tensor = tensors[at];
  const { name } = tensor;
  switch (next(9)) {
    case 0:
      if (tensors.length > 1) tensors.splice(at, 1);
      return `without ${name}`;
    case 1:
      tensor.name = otherKey(name, next);
      return `${name} renamed`;
    case 2: {
      const other = any(tensors, next);
      [tensor.name, other.name] = [other.name, name];
      return `${name} and ${tensor.name} exchanged`;
    }
    case 3:
      tensor.type = next(4) === 0 ? next(64) : any([...BLOCKS.keys()], next);
      return `${name} of type ${tensor.type}`;
    case 4:
      if (tensor.sides.length > 0) tensor.sides[next(tensor.sides.length)] = any(STRANGE_NUMBERS, next);
      return `a side of ${name}`;
    case 5:
      tensor.sides = next(6) === 0 ? new Array(5 + next(1000)).fill(1) : otherSides(tensor.sides, next);
      return `the sides of ${name}`;
    case 6:
      tensor.offset = any([...STRANGE_NUMBERS, BigInt(ALIGNMENT * next(1e5))], next);
      return `the offset of ${name}`;
    case 7:
      tensors.splice(next(tensors.length), 0, { ...tensor });
      return `${name} twice`;
    default: {
      const [rename, how] = otherFamily(name, next);
      for (const each of tensors) each.name = rename(each.name);
      return how;
    }
  }
}

function damagePair(pairs, tensors, next) {
  const at = next(pairs.length);
  const pair = pairs[at];
  switch (next(6)) {
    case 0:
      pair.key = otherKey(pair.key, next);
      return `pair ${pair.key.slice(0, 40)} renamed`;
    case 1:
      pair.type = next(2) === 0 ? next(16) : any([TEXT, LIST, 255, 2 ** 32 - 1], next);
      return `${pair.key} of type ${pair.type}`;
    case 2:
      for (let i = 0; i < 1 + next(4); i++) pair.bytes[next(pair.bytes.length)] = next(256);
      return `bytes of ${pair.key}`;
    case 3:
      pairs.splice(at, 0, { ...pair });
      return `${pair.key} twice`;
    case 4:
      // lists in lists, to any depth
      pair.type = LIST;
      pair.bytes = Buffer.concat([
        ...Array.from({ length: next(2000) }, () => list(LIST, [Buffer.alloc(0)])),
        pair.bytes,
      ]);
      return `${pair.key} as lists in lists`;
    default: {
      const { name, sides } = any(tensors, next);
      pairs.push(numbersPair(`comfy.gguf.orig_shape.${name}`, next(2) === 0 ? [next(100), next(100)] : sides));
      return `the original shape of ${name}`;
    }
  }
}

/** Gives all tensors offsets that fit them, where their sides allow it, and returns the end of the last. */
function laidOut(tensors) {
  let end = 0;
  for (const tensor of tensors) {
    const block = BLOCKS.get(tensor.type);
    const count = tensor.sides.reduce((product, side) => product * Number(side), 1);
    const size = block === undefined ? Number.NaN : Math.floor(count / block.values) * block.bytes;
    if (!(end + size <= MOST_BYTES)) continue;
    tensor.offset = end;
    end = padded(end + size);
  }
  return end;
}

const padded = (length) => Math.ceil(length / ALIGNMENT) * ALIGNMENT;
