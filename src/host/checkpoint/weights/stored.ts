import { type FileHandle, realpath, stat } from "node:fs/promises";
import { type ErrorCode, LatentkitError } from "../../../base/errors.js";
import { openRegular } from "../../../io/regular-file.js";
import {
  headerJson,
  headerLength,
  headerOf,
  LENGTH_BYTES,
  type StoredEntry,
  type StoredType,
} from "../../../io/safetensors.js";

/** A tensor of a model file on disk. */
export interface StoredWeight extends Omit<StoredEntry, "dtype"> {
  /** Type of its values, or of its blocks. */
  readonly dtype: StoredType | PackedType;
  /** Path without symbolic links. */
  readonly file: string;
  /** The file's own key for it. */
  readonly key: string;
  /** Factor of the values of an 8-bit weight: one number, or one for each row. */
  readonly factor?: StoredWeight;
  /** Columns of the matrix in the file, if the shape has more: the others are zeros. */
  readonly storedColumns?: number;
  /** Weights whose rows follow each other in this one, which then has no place in the file itself. */
  readonly parts?: readonly StoredWeight[];
  /** Tensors and numbers without which a weight of 4 or 8 bits has no values. */
  readonly packing?: Packing;
}

/** Tensors beside a weight, and numbers. */
export type Packing =
  | { readonly format: "MXFP8"; readonly scales: StoredWeight }
  | { readonly format: "NVFP4"; readonly scales: StoredWeight; readonly factor: StoredWeight }
  | {
      readonly format: "NF4";
      /** Values of the sixteen codes. */
      readonly table: StoredWeight;
      /** Largest magnitude of each group, or its code. */
      readonly largest: StoredWeight;
      readonly group: number;
      /** Values of these codes, with the factors and offsets of their groups. */
      readonly nested?: {
        readonly table: StoredWeight;
        readonly largest: StoredWeight;
        readonly group: number;
        readonly offset: number;
      };
    };

/** Weights of one part of a checkpoint by key, without the part's prefix. */
export type WeightMap = ReadonlyMap<string, StoredWeight>;

/** The weights as they lie in files. */
export const placedWeights = (weights: WeightMap): StoredWeight[] =>
  [...weights.values()].flatMap((weight) => weight.parts ?? [weight]);

/** Weights of as many columns, whose rows follow each other in one. */
export function joinedRows(parts: readonly StoredWeight[]): StoredWeight {
  const [first] = parts as [StoredWeight];
  const rows = parts.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
  const isWhole = parts.every(
    ({ shape }) =>
      shape.length === first.shape.length && shape.slice(1).every((side, axis) => side === first.shape[axis + 1]),
  );
  return parts.length > 1 && isWhole ? { ...first, shape: [rows, ...first.shape.slice(1)], parts } : first;
}

/** Number of values of a shape. */
export const valuesIn = (shape: readonly number[]): number => shape.reduce((product, side) => product * side, 1);

/** A file in the state in which it was opened. */
export interface FileState {
  /** Its name as graphs have it, below the folder of its kind: messages name it so. */
  readonly name: string;
  /** Path without symbolic links. */
  readonly path: string;
  readonly bytes: number;
  /** Time of the last change in nanoseconds since 1970. */
  readonly modifiedNs: bigint;
  readonly inode: bigint;
}

/** A model file on disk; only its header has been read. */
export interface WeightFile extends FileState {
  readonly metadata: Readonly<Record<string, string>>;
  /** By the file's own keys, in the order of the header. */
  readonly weights: WeightMap;
}

/** A model file before it is opened. */
export interface NamedFile {
  /** As in FileState. */
  readonly name: string;
  readonly path: string;
}

/** Longer names are cut at their beginning, which is the folder. */
const LONGEST_NAME = 160;

/** A file's name in a message. */
export const quotedName = (name: string): string =>
  JSON.stringify(name.length > LONGEST_NAME ? `…${name.slice(-LONGEST_NAME)}` : name);

/** The error of a sound file that is not the expected one. */
export const unsupported = (name: string, expected: string, received: string): LatentkitError =>
  refusal("model.unsupported", name, expected, received);

/** The error of a file whose weights are damaged or contradict each other. */
export const invalid = (name: string, expected: string, received: string): LatentkitError =>
  refusal("model.invalid", name, expected, received);

/** End of the name of a part of a model that has several, as diffusers and llama.cpp number them. */
const PART = /-(\d{5})-of-(\d{5})\.(?:safetensors|gguf)$/;

function refusal(code: ErrorCode, name: string, expected: string, received: string): LatentkitError {
  const [part, parts = 1] = (PART.exec(name) ?? []).slice(1).map(Number);
  if (parts > 1) return errorOf(code, name, "a whole model", `part ${part} of ${parts}: join the parts to one file`);
  return errorOf(code, name, expected, received);
}

function errorOf(code: ErrorCode, name: string, expected: string, received: string): LatentkitError {
  const message = `Model ${quotedName(name)}: expected ${expected}, received ${received}.`;
  return new LatentkitError(code, message, { expected, received });
}

/**
 * Reads the header of a .safetensors file. Throws file.not-found, file.read-failed and, for a damaged header, a file that
 * is longer or shorter than its tensors, or another kind of file, safetensors.invalid.
 */
export function openWeightFile(model: NamedFile): Promise<WeightFile> {
  return openedFile(model, async (handle, { path, bytes }) => {
    const length = headerLength(await readAt(handle, 0, Math.min(LENGTH_BYTES, bytes)), bytes);
    const root = headerJson(await readAt(handle, LENGTH_BYTES, length));
    // each half of the work takes some milliseconds: the event loop turns in between
    await new Promise((resolve) => setImmediate(resolve));
    const { metadata, entries } = headerOf(root, length, bytes);
    const weights = new Map<string, StoredWeight>();
    for (const [key, entry] of entries) weights.set(key, { ...entry, file: path, key });
    return { metadata, weights };
  });
}

/** Opens a model file and reads it. Throws file.not-found, file.read-failed and the errors of `read`. */
export async function openedFile(
  { name, path }: NamedFile,
  read: (handle: FileHandle, state: FileState) => Promise<Pick<WeightFile, "metadata" | "weights">>,
): Promise<WeightFile> {
  try {
    const file = await realpath(path);
    const handle = await openRegular(file);
    try {
      const { size, mtimeNs, ino } = await handle.stat({ bigint: true });
      const state = { name, path: file, bytes: Number(size), modifiedNs: mtimeNs, inode: ino };
      return { ...state, ...(await read(handle, state)) };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw readError(name, error);
  }
}

/** Only the state of a file. */
export const fileState = ({ name, path, bytes, modifiedNs, inode }: FileState): FileState => ({
  name,
  path,
  bytes,
  modifiedNs,
  inode,
});

/** Rejects with model.invalid if a file has changed since it was opened. */
export async function requireUnchanged(files: readonly FileState[]): Promise<void> {
  for (const file of files) {
    if (!(await hasChanged(file))) continue;
    const message = `Model ${quotedName(file.name)} has changed since it was loaded: run this again.`;
    throw new LatentkitError("model.invalid", message);
  }
}

/** Whether the file has another size, time of change or inode than when it was opened, or is gone. */
async function hasChanged({ name, path, bytes, modifiedNs, inode }: FileState): Promise<boolean> {
  try {
    const { size, mtimeNs, ino } = await stat(path, { bigint: true });
    return Number(size) !== bytes || mtimeNs !== modifiedNs || ino !== inode;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw readError(name, error);
  }
}

/** Reads `length` bytes, which the file's size promises: fewer if it has shrunk since. */
export async function readAt(handle: FileHandle, position: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/** The error of a file that cannot be read, with the model's name. */
export function readError(name: string, error: unknown): LatentkitError {
  const cause = { cause: error };
  if (error instanceof LatentkitError) {
    if (error.code !== "safetensors.invalid") return error;
    const reason = error.message.replace(/^Safetensors: /, "");
    return new LatentkitError(error.code, `Model ${quotedName(name)}: ${reason}`, error.details, cause);
  }
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT")
    return new LatentkitError("file.not-found", `Model ${quotedName(name)} no longer exists.`, {}, cause);
  return new LatentkitError("file.read-failed", `Model ${quotedName(name)} cannot be read: ${code}.`, {}, cause);
}

/** A type of weights in blocks, and the codes that MatMulNBits takes for them. */
export interface BlockType {
  /** Its number in GGUF files. */
  readonly id: number;
  /** Values of a block, and its bytes. */
  readonly values: number;
  readonly bytes: number;
  /** Values that share a scale. */
  readonly group: 16 | 32;
  /** Bits of a number: its code has four of them, and another one those below. */
  readonly bits: 4 | 8;
  /** Number whose codes are the middle ones, unless an offset accounts for that. */
  readonly centre?: number;
  /** Whether each group has an offset too. */
  readonly hasOffsets?: boolean;
}

/** Types of weights in blocks, by the names that GGUF gives them. */
export const BLOCK_TYPES = {
  Q4_0: { id: 2, values: 32, bytes: 18, group: 32, bits: 4 },
  Q4_1: { id: 3, values: 32, bytes: 20, group: 32, bits: 4, hasOffsets: true },
  Q5_0: { id: 6, values: 32, bytes: 22, group: 32, bits: 8 },
  Q5_1: { id: 7, values: 32, bytes: 24, group: 32, bits: 8, hasOffsets: true },
  Q8_0: { id: 8, values: 32, bytes: 34, group: 32, bits: 8, centre: 8 },
  Q2_K: { id: 10, values: 256, bytes: 84, group: 16, bits: 4, hasOffsets: true },
  Q3_K: { id: 11, values: 256, bytes: 110, group: 16, bits: 4 },
  Q4_K: { id: 12, values: 256, bytes: 144, group: 32, bits: 4, hasOffsets: true },
  Q5_K: { id: 13, values: 256, bytes: 176, group: 32, bits: 8, hasOffsets: true },
  Q6_K: { id: 14, values: 256, bytes: 210, group: 16, bits: 8 },
  IQ4_NL: { id: 20, values: 32, bytes: 18, group: 32, bits: 8 },
  IQ4_XS: { id: 23, values: 256, bytes: 136, group: 32, bits: 8 },
} as const satisfies Readonly<Record<string, BlockType>>;

/** Types of weights whose scales lie beside them in a .safetensors file. */
const SCALED_TYPES = ["MXFP8", "NVFP4", "NF4"] as const;

type PackedType = keyof typeof BLOCK_TYPES | (typeof SCALED_TYPES)[number];

export const isBlockType = (type: string): type is keyof typeof BLOCK_TYPES => Object.hasOwn(BLOCK_TYPES, type);

export const isPacked = (type: string): type is PackedType =>
  isBlockType(type) || (SCALED_TYPES as readonly string[]).includes(type);
