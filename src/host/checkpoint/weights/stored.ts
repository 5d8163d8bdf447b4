import { type FileHandle, realpath, stat } from "node:fs/promises";
import { LatentkitError } from "../../../base/errors.js";
import { openRegular } from "../../../io/regular-file.js";
import { headerJson, headerLength, headerOf, LENGTH_BYTES, type StoredEntry } from "../../../io/safetensors/header.js";

/** A tensor of a .safetensors file on disk. */
export interface StoredWeight extends StoredEntry {
  /** Path without symbolic links. */
  readonly file: string;
  /** The file's own key for it. */
  readonly key: string;
  /** Factor of the values of an 8-bit weight: one number, or one for each row. */
  readonly factor?: StoredWeight;
  /** Columns of the matrix in the file, where the shape has more: these are zeros. */
  readonly storedColumns?: number;
}

/** Weights of one part of a checkpoint by key, without the part's prefix. */
export type WeightMap = ReadonlyMap<string, StoredWeight>;

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

/** A .safetensors file on disk, of which only the header has been read. */
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

/**
 * Reads the header of a .safetensors file. Throws file.not-found, file.read-failed and, for a damaged header, a file that
 * is longer or shorter than its tensors, or another kind of file, safetensors.invalid.
 */
export async function openWeightFile({ name, path }: NamedFile): Promise<WeightFile> {
  try {
    const file = await realpath(path);
    const handle = await openRegular(file);
    try {
      const { size, mtimeNs, ino } = await handle.stat({ bigint: true });
      const bytes = Number(size);
      const length = headerLength(await readAt(handle, 0, Math.min(LENGTH_BYTES, bytes)), bytes);
      const root = headerJson(await readAt(handle, LENGTH_BYTES, length));
      // each half of the work takes some milliseconds: the event loop turns in between
      await new Promise((resolve) => setImmediate(resolve));
      const header = headerOf(root, length, bytes);
      const weights = new Map<string, StoredWeight>();
      for (const [key, entry] of header.entries) weights.set(key, { ...entry, file, key });
      return { name, path: file, bytes, modifiedNs: mtimeNs, inode: ino, metadata: header.metadata, weights };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw readError(name, error);
  }
}

/** The state of a file alone. */
export const fileState = ({ name, path, bytes, modifiedNs, inode }: FileState): FileState => ({
  name,
  path,
  bytes,
  modifiedNs,
  inode,
});

/** Rejects with model.invalid where a file has changed since it was opened. */
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

/** Reads `length` bytes, which the file's size promises: fewer where it has shrunk since. */
async function readAt(handle: FileHandle, position: number, length: number): Promise<Uint8Array> {
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
    return new LatentkitError("file.not-found", `Model ${quotedName(name)} is not there any more.`, {}, cause);
  return new LatentkitError("file.read-failed", `Model ${quotedName(name)} cannot be read: ${code}.`, {}, cause);
}
