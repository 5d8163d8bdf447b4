import {
  closeSync,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  promises,
  read,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, isAbsolute, resolve, win32 } from "node:path";
import { promisify } from "node:util";
import { sha256 } from "../../base/bytes.js";
import { describe, type ErrorCode, LatentkitError } from "../../base/errors.js";
import { hintOf, suggest } from "../../base/suggest.js";
import { returnMemory, takeMemory } from "../../tensor/memory-pool.js";
import { parseAddress } from "../http/download.js";
import { HEAD_BYTES, isRead, KIND_NAMES, needsSharp, pictureKind, READ_NAMES } from "../pictures/format.js";
import { requireSharp } from "../pictures/sharp.js";
import { isInside, MAX_PATH_CHARACTERS, READ_FLAGS, readRegular } from "../regular-file.js";
import { dataBytes, type FilesByName, givenBytes, isAddress, isDataText, withoutType } from "./input-text.js";
import { withSlashes } from "./output-path.js";

/** Larger files are refused before they are read. */
const MAX_BYTES = 2 ** 30;

const MIN_POOL_STEP = 2 ** 14;

/** Number of names that a wrong name is compared with. */
const MAX_NEIGHBOURS = 4096;

/** A file of the input folder; `subject` names it in messages, such as `input "image"`. */
interface InputFile {
  readonly folder: string;
  readonly name: string;
  readonly subject?: string;
  /** Files at hand, which come before those of the folder. */
  readonly files?: FilesByName;
}

const SUBJECT = "Input file";

/**
 * Reads a file at hand, of a data: URL, or of the input folder, into memory of `takeMemory`. `name` is relative to the
 * folder, with folders, and may end in " [input]" as ComfyUI writes it. Fails with input.invalid for an empty name, with
 * path.outside if it would leave the folder, by a symbolic link too, with file.not-found and file.read-failed.
 */
export async function readInputFile(file: InputFile, disk = freeInputDisk): Promise<Buffer> {
  const inline = inlineBytes(file);
  if (inline !== undefined) return inline;
  const path = resolveInput(file);
  try {
    const [root, real] = await Promise.all([disk.realpath(file.folder), disk.realpath(path)]);
    if (!isInside(root, real)) throw outside(file);
    // a pipe or device would never end
    const stat = await disk.stat(real);
    checkStat(file, stat);
    return await readPooled(real, stat.size, disk);
  } catch (error) {
    throw readFailed(error, file, path);
  }
}

/** Reads into a buffer of the pool: a new one for each photograph of a batch would make V8 collect its heap often. */
async function readPooled(path: string, size: number, disk: InputDisk): Promise<Buffer> {
  const capacity = pooledLength(size + 1);
  const bytes = Buffer.from(takeMemory(capacity), 0, capacity);
  const handle = await disk.open(path, READ_FLAGS);
  try {
    let length = 0;
    while (length < capacity) {
      const { bytesRead } = await handle.read(bytes, length, capacity - length, length);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
    }
  } finally {
    await handle.close();
  }
  // the file has grown meanwhile
  returnMemory(bytes.buffer);
  return (await readRegular(path, Number.POSITIVE_INFINITY))!;
}

/** At most an eighth more, so that files of similar sizes share buffers. */
function pooledLength(size: number): number {
  const step = Math.max(MIN_POOL_STEP, 2 ** (28 - Math.clz32(size)));
  return Math.ceil(size / step) * step;
}

/**
 * Throws what reading a picture would throw by the file's path, kind and first bytes; synchronous, without reading the rest.
 * Fails with picture.needs-sharp if only sharp could read it. `hints` is the number of suggestions that may still be
 * searched for.
 */
export function checkInputPicture(file: InputFile, hints?: { left: number }): void {
  checkInputFile(file, hints, (head) => checkPictureHead(file, head));
}

/** Throws what readInputFile would throw, as checkInputPicture does; `check` gets the first bytes. */
export function checkInputFile(file: InputFile, hints?: { left: number }, check?: (head: Uint8Array) => void): void {
  const inline = inlineBytes(file);
  if (inline !== undefined) {
    check?.(inline.subarray(0, HEAD_BYTES));
    return;
  }
  if (isAddress(file.name)) {
    parseAddress(file.name, file.subject ?? SUBJECT);
    return;
  }
  const path = resolveInput(file);
  let descriptor: number | undefined;
  try {
    const real = realpathSync.native(path);
    if (!isInside(realpathSync.native(file.folder), real)) throw outside(file);
    checkStat(file, statSync(real));
    descriptor = openSync(real, READ_FLAGS);
    checkStat(file, fstatSync(descriptor));
    if (check === undefined) return;
    const head = new Uint8Array(HEAD_BYTES);
    check(head.subarray(0, readSync(descriptor, head, 0, HEAD_BYTES, 0)));
  } catch (error) {
    throw readFailed(error, file, path, hints);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** SHA-256 of an input file's bytes, in hex. */
export async function inputFileHash(folder: string, name: string, files?: FilesByName): Promise<string> {
  const bytes = await readInputFile({ folder, name, files });
  const hash = sha256(bytes);
  returnMemory(bytes.buffer);
  return hash;
}

/** Makes an inputFileHash for one run, which reads a file again only after it has changed. */
export function createInputHashes(folder: string, files?: FilesByName): (name: string) => Promise<string> {
  const hashes = new Map<string, { state: string; hash: string }>();
  return async (name) => {
    if (inlineBytes({ folder, name, files }) !== undefined) return inputFileHash(folder, name, files);
    const path = resolveInput({ folder, name });
    const { size = 0, mtimeMs = 0 } = (await promises.stat(path).catch(() => undefined)) ?? {};
    const state = `${size} ${mtimeMs}`;
    const cached = hashes.get(path);
    if (cached?.state === state) return cached.hash;
    const hash = await inputFileHash(folder, name);
    hashes.set(path, { state, hash });
    return hash;
  };
}

/** Bytes of a file at hand or a data: URL; undefined for a file of the folder. */
function inlineBytes({ name, files, subject = SUBJECT }: InputFile): Buffer | undefined {
  const given = givenBytes(files, name);
  if (given !== undefined) return given;
  return isDataText(name) ? dataBytes(name, subject) : undefined;
}

function resolveInput(file: InputFile): string {
  const plain = withoutType(file.name);
  if (plain.trim() === "") {
    const [expected, received] = ["a file name", "an empty text"];
    const message = `${file.subject ?? SUBJECT}: expected ${expected}, received ${received}.`;
    throw new LatentkitError("input.invalid", message, { expected, received });
  }
  const isForeign =
    isAbsolute(plain) || win32.isAbsolute(plain) || plain.includes("\0") || plain.length > MAX_PATH_CHARACTERS;
  // refused on every system alike: a graph is equally safe everywhere
  if (isForeign || win32.normalize(plain).split(win32.sep)[0] === "..") throw outside(file);
  const root = resolve(file.folder);
  const path = resolve(root, plain.includes("\\") && !isThere(resolve(root, plain)) ? withSlashes(plain) : plain);
  if (path === root) throw fault("file.read-failed", file, "a file", ", which is a folder");
  if (!isInside(root, path)) throw outside(file);
  return path;
}

/** Whether a path exists: on most systems a backslash may be a part of a name, but graphs of Windows part folders by it. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function checkStat(file: InputFile, stat: { size: number; isFile(): boolean; isDirectory(): boolean }): void {
  const kind = stat.isDirectory() ? "a folder" : "a pipe or device";
  if (!stat.isFile()) throw fault("file.read-failed", file, "a file", `, which is ${kind}`);
  if (stat.size > MAX_BYTES)
    throw fault("file.read-failed", file, `a file of at most ${MAX_BYTES} bytes`, `, which has ${stat.size}`);
}

/** Throws picture.invalid for the first bytes of any other format, which the message names, and picture.needs-sharp. */
export function checkPictureHead(file: Pick<InputFile, "name" | "subject">, head: Uint8Array): void {
  const kind = pictureKind(head);
  if (!isRead(kind)) {
    const reason = head.length === 0 ? "empty" : kind === undefined ? "not a picture" : KIND_NAMES[kind];
    throw fault("picture.invalid", file, `a ${READ_NAMES} file`, `, which is ${reason}`);
  }
  if (needsSharp(kind)) requireSharp(`${file.subject ?? SUBJECT}: reading ${KIND_NAMES[kind]} file`);
}

const outside = (file: InputFile): LatentkitError =>
  fault("path.outside", file, "the name of a file inside the input folder", "");

/** Error of a file's name; `reason` follows the name, a suggestion the sentence. */
function fault(
  code: ErrorCode,
  { name, subject = SUBJECT }: Pick<InputFile, "name" | "subject">,
  expected: string,
  reason: string,
  { suggestion, cause }: { suggestion?: string; cause?: unknown } = {},
): LatentkitError {
  const message = `${subject}: expected ${expected}, received ${describe(name)}${reason}.${hintOf(suggestion, describe)}`;
  return new LatentkitError(code, message, { expected, received: describe(name), suggestion }, { cause });
}

function readFailed(error: unknown, file: InputFile, path: string, hints = { left: 1 }): LatentkitError {
  if (error instanceof LatentkitError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOENT" && code !== "ENOTDIR")
    return fault("file.read-failed", file, "a readable file", ` (${code})`, { cause: error });
  const others = hints.left-- > 0 ? neighbours(path) : [];
  const [type, folder] = OTHER_FOLDER.exec(file.name) ?? [""];
  const name = file.name.slice(withSlashes(file.name).lastIndexOf("/") + 1, file.name.length - type.length);
  const { suggestion } = suggest(name, others);
  const reason =
    type === ""
      ? ", which does not exist"
      : `, a file of ComfyUI's ${folder} folder: copy it to the input folder, and name it without "${type}"`;
  return fault("file.not-found", file, "a file in the input folder", reason, { suggestion, cause: error });
}

/** Mark of ComfyUI for a file of its output folder, or of the one for previews. */
const OTHER_FOLDER = / \[(output|temp)\]$/;

function neighbours(path: string): string[] {
  const names: string[] = [];
  try {
    const folder = opendirSync(dirname(path));
    try {
      for (let entry = folder.readSync(); entry !== null && names.length < MAX_NEIGHBOURS; entry = folder.readSync())
        names.push(entry.name);
    } finally {
      folder.closeSync();
    }
  } catch {
    // no suggestion then
  }
  return names;
}

interface InputHandle {
  read(bytes: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}

/** Calls that reading a file takes. */
interface InputDisk {
  realpath(path: string): Promise<string>;
  stat(path: string): Promise<Stats>;
  open(path: string, flags: number): Promise<InputHandle>;
}

/** Does not block the thread. */
const freeInputDisk: InputDisk = promises;

const readAt = promisify(read);

// A file in memory costs less than a turn of Node's thread pool; a slow disk leaves the thread to its other run.
/** For threads that only render: all calls block the thread, except reading itself, which may wait for a medium. */
export const blockingInputDisk: InputDisk = {
  realpath: async (path) => realpathSync.native(path),
  stat: async (path) => statSync(path),
  open: async (path, flags) => {
    const descriptor = openSync(path, flags);
    return {
      read: (bytes, offset, length, position) => readAt(descriptor, bytes, offset, length, position),
      close: async () => closeSync(descriptor),
    };
  },
};
