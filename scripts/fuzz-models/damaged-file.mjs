import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";

/**
 * A sound model file, and a way to write its header anew with errors in it; `end` is how many bytes of values that header means.
 *
 * @typedef {object} Sample
 * @property {string} name
 * @property {Buffer} bytes
 * @property {number} start where its values begin
 * @property {(next: Next) => { header: Uint8Array, end: number, how: string }} rewritten
 */
/** Whole numbers from 0 to below n. @typedef {(n: number) => number} Next */

/** Larger files would fill the disk if it does not keep holes. */
export const MOST_BYTES = 2 ** 28;
/** Changes of one header. */
const CHANGES = 4;
const STRANGE_NUMBERS = [-1, 0, 1, 1.5, 3, 31, 33, 2 ** 20, 2 ** 31, 2 ** 53, 1e300, null, "4", [4], true];
const STRANGE_KEYS = ["", "__proto__", "constructor", "é\u0000\n", "a".repeat(1e5), ".".repeat(5000), "weight"];

/**
 * Writes a damaged copy of a sample and tells how.
 *
 * @param {string} path
 * @param {Sample} sample
 * @param {Next} next
 * @returns {string}
 */
export function writeDamaged(path, { bytes, start, rewritten }, next) {
  const handle = openSync(path, "w");
  try {
    switch (next(7)) {
      case 0: {
        const length = next(2) === 0 ? next(start) : next(bytes.length);
        writeSync(handle, bytes.subarray(0, length));
        return `${length} of ${bytes.length} bytes`;
      }
      case 1:
        return withOtherBytes(handle, bytes, [0, start], next);
      case 2:
        return withOtherBytes(handle, bytes, [start, bytes.length], next);
      default: {
        const { header, end, how } = rewritten(next);
        writeSync(handle, header);
        writeSync(handle, bytes.subarray(start, start + end));
        ftruncateSync(handle, header.length + end);
        return how;
      }
    }
  } finally {
    closeSync(handle);
  }
}

function withOtherBytes(handle, bytes, [from, to], next) {
  const damaged = Buffer.from(bytes);
  const count = 1 + next(8);
  for (let i = 0; i < count; i++) damaged[from + next(to - from)] = next(256);
  writeSync(handle, damaged);
  return `${count} bytes from ${from} to ${to}`;
}

/** Applies some changes, each of which tells how. @param {Next} next @param {() => string} change */
export const changed = (next, change) => Array.from({ length: 1 + next(CHANGES) }, change).join(", ");

/** @template T @param {readonly T[]} list @param {Next} next @returns {T} */
export const any = (list, next) => list[next(list.length)];

/** A key in the place of another: strange, or with another part. @param {string} key @param {Next} next */
export function otherKey(key, next) {
  const [cut, to] = [next(key.length + 1), next(12)];
  return next(3) === 0 ? any(STRANGE_KEYS, next) : `${key.slice(0, cut)}${to}${key.slice(cut + next(2))}`;
}

/** Sides in the place of others. @param {readonly any[]} sides @param {Next} next */
export const otherSides = (sides, next) => any([[], sides.slice(1), [...sides, 1], sides.toReversed()], next);

/**
 * A change of a whole family of keys, which is what a converter with a bug writes, and how it is told.
 *
 * @param {string} key one of the family
 * @param {Next} next
 * @returns {[rename: (key: string) => string, how: string]}
 */
export function otherFamily(key, next) {
  const part = any(key.split("."), next);
  const to = any(["", "0", "99", "model", "x".repeat(200)], next);
  return [(each) => each.replaceAll(part === "" ? "." : part, to), `${part} as ${to.slice(0, 8)} in all keys`];
}

const LENGTH_BYTES = 8;
const TYPES = { F64: 8, F32: 4, F16: 2, BF16: 2, F8_E4M3: 1, F8_E5M2: 1, I64: 8, U8: 1, BOOL: 1 };

/**
 * A .safetensors file.
 *
 * @param {string} name
 * @param {Buffer} bytes
 * @returns {import("./damaged-file.mjs").Sample}
 */
export function safetensorsSample(name, bytes) {
  const start = LENGTH_BYTES + Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.toString("utf8", LENGTH_BYTES, start));
  return {
    name,
    bytes,
    start,
    rewritten(next) {
      const entries = Object.entries(structuredClone(header));
      const how = changed(next, () => damage(entries, next));
      const isSound = next(4) > 0;
      const end = isSound ? laidOut(entries) : bytes.length - start;
      const text = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeBigUInt64LE(BigInt(text.length));
      return { header: Buffer.concat([length, text]), end, how: isSound ? `${how}, laid out anew` : how };
    },
  };
}

/** Changes one entry of a header, and tells how. */
function damage(entries, next) {
  const at = next(entries.length);
  const [key, value] = entries[at];
  // an earlier change may have left no object
  const entry = Object(value);
  switch (next(9)) {
    case 0:
      if (entries.length > 1) entries.splice(at, 1);
      return `without ${key}`;
    case 1:
      entries[at][0] = otherKey(key, next);
      return `${key} renamed`;
    case 2:
      [entries[at][0], entries[next(entries.length)][0]] = [any(entries, next)[0], key];
      return `${key} and another exchanged`;
    case 3:
      entry.dtype = next(6) === 0 ? any(["F4", "", 7, null], next) : any(Object.keys(TYPES), next);
      return `${key} as ${entry.dtype}`;
    case 4:
      if (Array.isArray(entry.shape) && entry.shape.length > 0)
        entry.shape[next(entry.shape.length)] = any(STRANGE_NUMBERS, next);
      return `a side of ${key}`;
    case 5:
      if (Array.isArray(entry.shape)) entry.shape = otherSides(entry.shape, next);
      return `the sides of ${key}`;
    case 6:
      if (Array.isArray(entry.data_offsets)) entry.data_offsets[next(2)] = any([...STRANGE_NUMBERS, next(1e6)], next);
      return `the offsets of ${key}`;
    case 7:
      entries[at][1] = any([null, 5, "text", [], {}, { ...entry, shape: entry.shape?.length }], next);
      return `${key} as another value`;
    default: {
      const [rename, how] = otherFamily(key, next);
      for (const each of entries) each[0] = rename(each[0]);
      return how;
    }
  }
}

/** Gives all tensors offsets that fit them, where their sides allow it, and returns the end of the last. */
function laidOut(entries) {
  let end = 0;
  for (const [, entry] of entries) {
    if (!Array.isArray(entry?.shape) || !Object.hasOwn(TYPES, entry.dtype)) continue;
    const size = entry.shape.reduce((product, side) => product * side, TYPES[entry.dtype]);
    if (!Number.isSafeInteger(size) || size < 0 || end + size > MOST_BYTES) continue;
    entry.data_offsets = [end, end + size];
    end += size;
  }
  return end;
}
