import { any, changed, MOST_BYTES, otherFamily, otherKey, otherSides, STRANGE_NUMBERS } from "./damaged-file.mjs";

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
    ...{ name, bytes, start },
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
