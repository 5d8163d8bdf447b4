import { describe } from "../../../../base/errors.js";
import { type StoredEntry, type StoredType, VALUE_BYTES } from "../../../../io/safetensors.js";
import { BLOCK_TYPES, invalid, isBlockType, unsupported, valuesIn } from "../stored.js";

/** A tensor of a GGUF file. */
export interface GgufEntry extends Omit<StoredEntry, "dtype"> {
  readonly dtype: GgufType;
}

/** Types of tensors: single values, and blocks. */
type GgufType = StoredType | keyof typeof BLOCK_TYPES;

export interface GgufHeader {
  /** Pairs whose values are numbers or short texts. */
  readonly metadata: Readonly<Record<string, string>>;
  /** By the file's own names, in its order. */
  readonly entries: ReadonlyMap<string, GgufEntry>;
}

const MAGIC = "GGUF";
const VERSIONS = [2, 3];

/** Bounds as those of .safetensors files: the largest models have a tenth of these. */
const MAX_TENSORS = 65_536;
const MAX_PAIRS = 65_536;
const MAX_KEY = 65_535;
const MAX_NAME = 1024;
/** Longer texts are templates and licences. */
const LONGEST_TEXT = 4096;
/** Lists in lists. */
const MAX_DEPTH = 4;
const MAX_SIDES = 4;
/** Sides of a tensor that was stored in another shape. */
const MAX_ORIGINAL_SIDES = 8;

/** Types of values other than numbers. */
const TEXT = 8;
const LIST = 9;
const ALIGNMENT = "general.alignment";
const DEFAULT_ALIGNMENT = 32;
const MAX_ALIGNMENT = 65_536;
const ORIGINAL_SHAPE = "comfy.gguf.orig_shape.";

const SINGLE_TYPES: Readonly<Record<number, StoredType>> = {
  0: "F32",
  1: "F16",
  24: "I8",
  25: "I16",
  26: "I32",
  27: "I64",
  28: "F64",
  30: "BF16",
};
const TYPES: ReadonlyMap<number, GgufType> = new Map([
  ...Object.entries(SINGLE_TYPES).map(([id, type]) => [Number(id), type] as const),
  ...Object.entries(BLOCK_TYPES).map(([type, { id }]) => [id, type as keyof typeof BLOCK_TYPES] as const),
]);
/** Names of types that are not read. */
const OTHER_TYPES: Readonly<Record<number, string>> = {
  4: "Q4_2",
  5: "Q4_3",
  9: "Q8_1",
  15: "Q8_K",
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  21: "IQ3_S",
  22: "IQ2_S",
  29: "IQ1_M",
  34: "TQ1_0",
  35: "TQ2_0",
  39: "MXFP4",
  40: "NVFP4",
};

/** Whether a file that begins so is a GGUF file. */
export const isGgufStart = (start: Uint8Array): boolean =>
  Buffer.from(start.subarray(0, MAGIC.length)).toString("latin1") === MAGIC;

/**
 * Reads the header of a GGUF file of `fileBytes` from its first bytes; `name` is for messages. Every count, length, offset
 * and product is checked before it is used. Throws model.invalid for impossible values, model.unsupported for
 * another version and for unknown types of weights, by name, and MORE if more of the file is needed.
 */
export function ggufHeader(name: string, bytes: Uint8Array, fileBytes: number): GgufHeader {
  const reader = new GgufReader(name, bytes, fileBytes);
  reader.take(MAGIC.length);
  if (!isGgufStart(bytes)) throw reader.invalid("a GGUF file", "other bytes");
  const version = reader.u32();
  if (!VERSIONS.includes(version))
    throw unsupported(name, `a GGUF file of version ${VERSIONS.join(" or ")}`, `${version}`);
  const tensors = reader.u64("a number of tensors");
  if (tensors > MAX_TENSORS) throw reader.invalid(`at most ${MAX_TENSORS} tensors in a header`, `${tensors}`);
  const pairs = reader.u64("a number of pairs");
  if (pairs > MAX_PAIRS) throw reader.invalid(`at most ${MAX_PAIRS} pairs in a header`, `${pairs}`);
  const { metadata, shapes } = readPairs(reader, pairs);
  const alignment = metadata.get(ALIGNMENT);
  const unit = alignment === undefined ? DEFAULT_ALIGNMENT : Number(alignment);
  if (!(unit >= 1 && unit <= MAX_ALIGNMENT && Number.isInteger(unit) && (unit & (unit - 1)) === 0))
    throw reader.invalid(`${ALIGNMENT} to be a power of two up to ${MAX_ALIGNMENT}`, describe(alignment));
  const read: UnplacedTensor[] = [];
  for (let count = 0; count < tensors; count++) read.push(readTensor(reader, shapes));
  const start = Math.ceil(reader.at / unit) * unit;
  return {
    metadata: Object.fromEntries(metadata),
    entries: placed(reader, read, { start, unit }),
  };
}

/** Shapes of tensors that are stored in another one, by their names. */
type Shapes = ReadonlyMap<string, readonly number[]>;

function readPairs(reader: GgufReader, count: number): { metadata: Map<string, string>; shapes: Shapes } {
  const metadata = new Map<string, string>();
  const shapes = new Map<string, readonly number[]>();
  const keys = new Set<string>();
  for (let pair = 0; pair < count; pair++) {
    const key = reader.text("a key", MAX_KEY);
    if (keys.has(key)) throw reader.invalid("each key once", `${describe(key)} twice`);
    keys.add(key);
    const type = reader.u32();
    if (key.startsWith(ORIGINAL_SHAPE)) {
      shapes.set(key.slice(ORIGINAL_SHAPE.length), readShape(reader, key, type));
      continue;
    }
    const text = readValue(reader, key, type);
    if (text !== undefined) metadata.set(key, text);
  }
  return { metadata, shapes };
}

/** A number or a short text; passes over others. */
function readValue(reader: GgufReader, key: string, type: number, depth = 0): string | undefined {
  const number = NUMBERS[type];
  if (number !== undefined) return reader.number(number);
  if (type === TEXT) {
    const start = reader.at;
    const length = reader.u64("a length of a text");
    if (length <= LONGEST_TEXT) {
      reader.at = start;
      return reader.text(describe(key), LONGEST_TEXT);
    }
    reader.take(length);
    return undefined;
  }
  if (type !== LIST) throw reader.invalid(`a value of ${describe(key)} of a type from 0 to 12`, `type ${type}`);
  if (depth === MAX_DEPTH) throw reader.invalid(`lists in ${describe(key)} at most ${MAX_DEPTH} deep`, "deeper ones");
  const element = reader.u32();
  const count = reader.u64("a length of a list");
  const single = NUMBERS[element];
  if (single !== undefined) reader.take(count * single.bytes);
  else if (element === TEXT) for (let i = 0; i < count; i++) reader.take(reader.u64("a length of a text"));
  // each takes twelve bytes at least, so that the file bounds their number
  else for (let i = 0; i < count; i++) readValue(reader, key, element, depth + 1);
  return undefined;
}

function readShape(reader: GgufReader, key: string, type: number): readonly number[] {
  const expected = `${describe(key)} to be a list of 1 to ${MAX_ORIGINAL_SIDES} sides`;
  const element = type === LIST ? NUMBERS[reader.u32()] : undefined;
  if (element === undefined) throw reader.invalid(expected, "another value");
  const count = reader.u64("a length of a list");
  if (count < 1 || count > MAX_ORIGINAL_SIDES) throw reader.invalid(expected, `${count} sides`);
  const sides = Array.from({ length: count }, () => Number(reader.number(element)));
  if (sides.every((side) => Number.isSafeInteger(side) && side >= 1)) return sides;
  throw reader.invalid(expected, `[${sides.join(", ")}]`);
}

/** A tensor whose offset is counted from the beginning of the data. */
interface UnplacedTensor {
  readonly name: string;
  readonly dtype: GgufType;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly bytes: number;
}

function readTensor(reader: GgufReader, shapes: Shapes): UnplacedTensor {
  const name = reader.text("a tensor's name", MAX_NAME);
  const subject = `tensor ${describe(name)}`;
  const rank = reader.u32();
  if (rank > MAX_SIDES) throw reader.invalid(`${subject} of at most ${MAX_SIDES} sides`, `${rank}`);
  // the innermost is first
  const sides = Array.from({ length: rank }, () => reader.u64("a side of a tensor"));
  const id = reader.u32();
  const offset = reader.u64("an offset");
  const dtype = TYPES.get(id);
  if (dtype === undefined)
    throw unsupported(reader.name, `${subject} of a type such as Q4_0, Q8_0 or Q4_K`, OTHER_TYPES[id] ?? `type ${id}`);
  const count = valuesIn(sides);
  // an empty one is a mark
  if (!Number.isSafeInteger(count))
    throw reader.invalid(`${subject} of less than 2^53 values`, `sides [${sides.join(", ")}]`);
  const block = isBlockType(dtype) ? BLOCK_TYPES[dtype] : { values: 1, bytes: VALUE_BYTES[dtype] };
  if ((sides[0] ?? 1) % block.values !== 0)
    throw reader.invalid(
      `${subject} of ${dtype} with rows of a multiple of ${block.values} values`,
      `${sides[0] ?? 1}`,
    );
  const shape = shapes.get(name) ?? sides.toReversed();
  if (valuesIn(shape) !== count)
    throw reader.invalid(`${subject} of ${count} values, as it has sides for`, `shape [${shape.join(", ")}]`);
  return { name, dtype, shape, offset, bytes: (count / block.values) * block.bytes };
}

/** The tensors with their places in the file: within it, apart from each other. */
function placed(
  reader: GgufReader,
  tensors: readonly UnplacedTensor[],
  { start, unit }: { start: number; unit: number },
): Map<string, GgufEntry> {
  const entries = new Map<string, GgufEntry>();
  for (const { name, dtype, shape, offset, bytes } of tensors) {
    const subject = `tensor ${describe(name)}`;
    if (entries.has(name)) throw reader.invalid("each tensor once", `${subject} twice`);
    if (offset % unit !== 0) throw reader.invalid(`${subject} at a multiple of ${unit} bytes`, `${offset}`);
    const from = start + offset;
    // sums beyond 2^53 are inexact, and no file is as long
    if (!(from + bytes <= reader.fileBytes))
      throw reader.invalid(
        `${subject} to end within the file's ${reader.fileBytes} bytes`,
        `an end at ${from + bytes}, the file may be truncated: download or copy it again`,
      );
    entries.set(name, { dtype, shape, from, to: from + bytes });
  }
  const inOrder = [...entries].sort(([, a], [, b]) => a.from - b.from || a.to - b.to);
  let end = start;
  for (const [name, { from, to }] of inOrder) {
    if (from < end)
      throw reader.invalid(`tensor ${describe(name)} to begin behind the one before, at ${end}`, `${from}`);
    end = to;
  }
  return entries;
}

/** Reads the beginning of a file of `fileBytes`, of which `bytes` have been read. Numbers are little-endian. */
class GgufReader {
  at = 0;
  readonly #view: DataView;
  readonly #bytes: Uint8Array;

  constructor(
    readonly name: string,
    bytes: Uint8Array,
    readonly fileBytes: number,
  ) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The error of a header that says something impossible. */
  invalid(expected: string, received: string): Error {
    return invalid(this.name, expected, received);
  }

  /** Moves on by `count` bytes and returns where they begin. Throws MORE if they are in the file but have not been read. */
  take(count: number): number {
    const from = this.at;
    if (count > this.fileBytes - from)
      throw this.invalid(
        "a header within the file",
        `only the first ${this.fileBytes} bytes of one: download it again`,
      );
    if (count > this.#bytes.length - from) throw MORE;
    this.at = from + count;
    return from;
  }

  u32(): number {
    return this.#view.getUint32(this.take(4), true);
  }

  /** A u64, as a number of things that a file can have. */
  u64(what: string): number {
    const from = this.take(8);
    const high = this.#view.getUint32(from + 4, true);
    if (high < 2 ** 21) return high * 2 ** 32 + this.#view.getUint32(from, true);
    throw this.invalid(`${what} below 2^53`, `${this.#view.getBigUint64(from, true)}`);
  }

  /** Text in UTF-8, of at most that many bytes. */
  text(what: string, most: number): string {
    const length = this.u64(`a length of ${what}`);
    if (length > most) throw this.invalid(`${what} of at most ${most} bytes`, `${length}`);
    const from = this.take(length);
    try {
      return UTF8.decode(this.#bytes.subarray(from, from + length));
    } catch {
      throw this.invalid(`${what} in UTF-8`, "other bytes");
    }
  }

  /** A number of one of the format's types, as text. */
  number({ bytes, read }: NumberType): string {
    return String(read(this.#view, this.take(bytes)));
  }
}

/** Thrown if a header continues after the bytes read so far. */
export const MORE = new Error("more of the header is needed");

const UTF8 = new TextDecoder("utf-8", { fatal: true });

interface NumberType {
  readonly bytes: number;
  readonly read: (view: DataView, at: number) => number | bigint | boolean;
}

/** Types of values that are numbers, by the format's own. */
const NUMBERS: Readonly<Record<number, NumberType>> = {
  0: { bytes: 1, read: (view, at) => view.getUint8(at) },
  1: { bytes: 1, read: (view, at) => view.getInt8(at) },
  2: { bytes: 2, read: (view, at) => view.getUint16(at, true) },
  3: { bytes: 2, read: (view, at) => view.getInt16(at, true) },
  4: { bytes: 4, read: (view, at) => view.getUint32(at, true) },
  5: { bytes: 4, read: (view, at) => view.getInt32(at, true) },
  6: { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  7: { bytes: 1, read: (view, at) => view.getUint8(at) !== 0 },
  10: { bytes: 8, read: (view, at) => view.getBigUint64(at, true) },
  11: { bytes: 8, read: (view, at) => view.getBigInt64(at, true) },
  12: { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
};
