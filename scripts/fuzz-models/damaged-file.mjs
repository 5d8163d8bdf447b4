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

/** Larger files would fill the disk where it does not keep holes. */
export const MOST_BYTES = 2 ** 28;
/** Changes of one header. */
const CHANGES = 4;
export const STRANGE_NUMBERS = [-1, 0, 1, 1.5, 3, 31, 33, 2 ** 20, 2 ** 31, 2 ** 53, 1e300, null, "4", [4], true];
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
