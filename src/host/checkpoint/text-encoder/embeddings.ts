import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { describe, LatentkitError } from "../../../base/errors.js";
import { headerLength, LENGTH_BYTES, parseHeader, type StoredEntry, toTensor } from "../../../io/safetensors.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withoutCommas } from "../../prompt/tokenize.js";
import type { FoundEmbedding } from "../../types.js";
import { type ModelFile, type ModelFolders, nearest } from "../files/model-folders.js";
import { damageOf, otherFormat, START_BYTES } from "../files/other-format.js";

/** Bytes of rows in memory: more than the longest prompt has. The files least recently used go first. */
const MOST_KEPT_BYTES = 2 ** 27;
/** Bytes that each file counts beside its values. */
const FILE_BYTES = 1024;
/** The encoder whose rows these are. */
export interface EmbeddingEncoder {
  /** "l", "g" or "h". */
  readonly name: string;
  /** Values of a token. */
  readonly width: number;
  /** Number of its own ids: those of rows follow. */
  readonly vocabulary: number;
}

/** Rows of one state of a file; none if `problem` says why the encoder has no use for them. */
interface Rows {
  readonly ids: readonly number[];
  readonly values: Float32Array;
  readonly problem?: string;
}

/**
 * Rows of textual inversions by the ids that stand for them in prompts. An id is never given twice, so a prompt that is
 * being encoded keeps its rows if a file changes meanwhile.
 */
export class EmbeddingRows {
  readonly #encoder: EmbeddingEncoder;
  readonly #folders: ModelFolders;
  /** By path and state of the file, the least recently used first. */
  readonly #files = new Map<string, Rows>();
  readonly #byId = new Map<number, Rows>();
  #bytes = 0;
  #nextId: number;

  constructor(encoder: EmbeddingEncoder, folders: ModelFolders) {
    this.#encoder = encoder;
    this.#folders = folders;
    this.#nextId = encoder.vocabulary;
  }

  /**
   * Looks up the word after "embedding:", as ClipEncoder does: the name of a file in the embeddings' folders, with or
   * without its ending; with commas that end it, else without them. Throws path.outside for a name that leads out of the
   * folders, model.unsupported for pickles, model.invalid for damaged files.
   */
  lookUp(word: string): FoundEmbedding {
    const { file, name } = findEmbedding(this.#folders, word);
    const rest = word.slice(name.length);
    if (file === undefined) return { ids: [], rest, warning: noSuchEmbedding(this.#folders, name) };
    const { ids, problem } = this.#rowsOf(file);
    return { ids, rest, warning: problem && leftOut(file, problem) };
  }

  /**
   * Inputs of the text encoder for chunks of ids: those of rows number the rows of `embeddings` [rows, width] from the
   * vocabulary's size on; one row of zeros if there are none.
   */
  feed(chunks: readonly (readonly number[])[]): { tokens: number[][]; embeddings: Tensor } {
    const { vocabulary, width } = this.#encoder;
    const places = new Map<number, number>();
    const tokens = chunks.map((ids) =>
      ids.map((id) => {
        if (id < vocabulary) return id;
        const place = places.get(id) ?? places.size;
        places.set(id, place);
        return vocabulary + place;
      }),
    );
    const embeddings = Tensor.zeros([Math.max(1, places.size), width]);
    for (const [id, place] of places) embeddings.data.set(this.#rowOf(id), place * width);
    return { tokens, embeddings };
  }

  #rowOf(id: number): Float32Array {
    const rows = this.#byId.get(id);
    if (rows === undefined) {
      const message = `Clip encoder ${describe(this.#encoder.name)}: expected ids of its vocabulary and of embeddings, received ${id}.`;
      throw new LatentkitError("value.invalid", message);
    }
    const from = (id - rows.ids[0]!) * this.#encoder.width;
    return rows.values.subarray(from, from + this.#encoder.width);
  }

  #rowsOf(file: ModelFile): Rows {
    const key = keyOf(file);
    const rows = this.#files.get(key) ?? this.#read(file);
    this.#files.delete(key);
    this.#files.set(key, rows);
    this.#evict();
    return rows;
  }

  #read(file: ModelFile): Rows {
    const read = readEmbedding(file, this.#encoder);
    const values = typeof read === "string" ? new Float32Array() : read;
    const first = this.#nextId;
    const ids = Array.from({ length: values.length / this.#encoder.width }, (_, row) => first + row);
    const rows: Rows = { ids, values, problem: typeof read === "string" ? read : undefined };
    this.#nextId += ids.length;
    for (const id of ids) this.#byId.set(id, rows);
    this.#bytes += bytesOf(rows);
    return rows;
  }

  #evict(): void {
    for (const [key, rows] of this.#files) {
      if (this.#bytes <= MOST_KEPT_BYTES) return;
      this.#files.delete(key);
      this.#bytes -= bytesOf(rows);
      for (const id of rows.ids) this.#byId.delete(id);
    }
  }
}

const bytesOf = ({ values }: Rows): number => values.byteLength + FILE_BYTES;

/** Path and state of a file. */
function keyOf({ path }: ModelFile): string {
  try {
    const { size, mtimeNs, ino } = statSync(path, { bigint: true });
    return [path, size, mtimeNs, ino].map(String).join("\n");
  } catch {
    // reading it says why
    return path;
  }
}

/** Larger tensors are not embeddings: 16 MiB hold a thousand rows of the widest encoder. */
const MOST_FILE_BYTES = 2 ** 24;
/** Name of the tensor of files for one encoder. */
const OWN_NAME = "emb_params";
/** LoRAs with the embeddings they were trained with name these `bundle_emb.NAME.string_to_param.*`, asterisk included. */
const BUNDLE = "bundle_emb.";
const BUNDLED_OWN_NAME = ".string_to_param.*";
const READABLE = /\.(?:safetensors|sft)$/i;

/**
 * Reads the rows of a textual inversion for an encoder, [n, width] as one array; or why it has none for it, in words.
 * Those of several embeddings in a LoRA's file follow each other. Throws model.unsupported for pickles, which could run
 * code, model.invalid for damaged files.
 */
export function readEmbedding(file: ModelFile, encoder: Encoder): Float32Array | string {
  return withFile(file, (descriptor) => rowsOf(descriptor, encoder));
}

/**
 * Reads only the header of a textual inversion: why it has no rows for each of some encoders, in words. Throws as
 * readEmbedding if no encoder can use the file.
 */
export function embeddingProblems(file: ModelFile, encoders: readonly Encoder[]): string[] {
  const tensors = withFile(file, tensorsIn);
  return encoders.flatMap((encoder) => problemOf(tensorsOf(tensors, encoder.name), encoder) ?? []);
}

/** A text encoder, and the number of values that it has for a token. */
interface Encoder {
  readonly name: string;
  readonly width: number;
}

function withFile<Result>(file: ModelFile, read: (descriptor: number) => Result): Result {
  if (!READABLE.test(file.name)) {
    const message = `${subject(file)}: expected a .safetensors file, received a pickle, which could run code and is never read.`;
    throw new LatentkitError("model.unsupported", message, { received: describe(file.name) });
  }
  try {
    // O_NONBLOCK: a pipe that has replaced the file does not wait for its writer
    const descriptor = openSync(file.path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      return read(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Sentence on an embedding that does not fit. */
export const leftOut = (file: ModelFile, problem: string): string => `${subject(file)} is ignored: ${problem}.`;

/** Subject of a message. */
export const subject = ({ name }: ModelFile): string => `Embedding ${describe(name)}`;

function tensorsIn(descriptor: number): ReadonlyMap<string, StoredEntry> {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) throw new LatentkitError("model.invalid", "expected a regular file.");
  const start = readAt(descriptor, 0, Math.min(START_BYTES, stats.size));
  const other = damageOf(start, stats.size) ?? otherFormat(start);
  if (other !== undefined)
    throw new LatentkitError("model.invalid", `expected a .safetensors file, received ${other}.`);
  const length = headerLength(start.subarray(0, LENGTH_BYTES), stats.size);
  return parseHeader(readAt(descriptor, LENGTH_BYTES, length), stats.size).entries;
}

function problemOf(tensors: readonly StoredEntry[], { name, width }: Encoder): string | undefined {
  if (tensors.length === 0) return `it has no tensor ${OWN_NAME} or clip_${name}`;
  const other = tensors.find(({ shape }) => shape.length < 1 || shape.length > 2 || shape.at(-1) !== width);
  return other && `its shape is [${other.shape.join(", ")}], but the encoder takes ${width} values per token`;
}

function rowsOf(descriptor: number, encoder: Encoder): Float32Array | string {
  const tensors = tensorsOf(tensorsIn(descriptor), encoder.name);
  const problem = problemOf(tensors, encoder);
  if (problem !== undefined) return problem;
  const bytes = tensors.reduce((sum, { from, to }) => sum + to - from, 0);
  if (bytes > MOST_FILE_BYTES) {
    const message = `expected an embedding of at most ${MOST_FILE_BYTES} bytes, received one of ${bytes}.`;
    throw new LatentkitError("model.invalid", message);
  }
  const parts = tensors.map((entry) => {
    return toTensor({ ...entry, bytes: readAt(descriptor, entry.from, entry.to - entry.from) }).data;
  });
  const rows = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    rows.set(part, at);
    at += part.length;
  }
  return rows;
}

/** Bytes of a file. Throws model.invalid if it has become shorter. */
function readAt(descriptor: number, from: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let read = 0;
  for (let more = -1; more !== 0 && read < length; read += more)
    more = readSync(descriptor, bytes, read, length - read, from + read);
  if (read === length) return bytes;
  throw new LatentkitError("model.invalid", `expected ${length} bytes from byte ${from} on, received ${read}.`);
}

/** Tensors of an encoder's rows; none if the file has none for it. */
function tensorsOf(entries: ReadonlyMap<string, StoredEntry>, encoder: string): readonly StoredEntry[] {
  const named = entries.get(`clip_${encoder}`) ?? entries.get(OWN_NAME);
  if (named !== undefined) {
    refuseFactor(entries, entries.has(`clip_${encoder}`) ? `clip_${encoder}` : OWN_NAME);
    return [named];
  }
  for (const ending of [BUNDLED_OWN_NAME, `.clip_${encoder}`]) {
    const bundled = [...entries].filter(([key]) => key.startsWith(BUNDLE) && key.endsWith(ending));
    if (bundled.length > 0) return bundled.map(([, entry]) => entry);
  }
  return entries.size === 1 ? [...entries.values()] : [];
}

/** Throws model.invalid for a tensor whose name says that it changes the values of another. */
function refuseFactor(entries: ReadonlyMap<string, StoredEntry>, name: string): void {
  for (const key of entries.keys()) {
    if (!key.startsWith(name) || !/^[._](?:.*_)?(?:scales?|zero_point|quant\w*)/.test(key.slice(name.length))) continue;
    const message = `${describe(key)} changes ${name} in a way that latentkit does not support.`;
    throw new LatentkitError("model.invalid", message);
  }
}

function unreadable(file: ModelFile, error: unknown): LatentkitError {
  if (error instanceof LatentkitError)
    return new LatentkitError(
      "model.invalid",
      `${subject(file)}: ${error.message.replace(/^Safetensors: /, "")}`,
      {},
      { cause: error },
    );
  const { code } = error as NodeJS.ErrnoException;
  return new LatentkitError("file.read-failed", `${subject(file)} cannot be read (${code}).`, {}, { cause: error });
}

/** Endings that a name may lack, in the order in which they are tried. */
const ENDINGS = ["", ".safetensors", ".pt", ".bin"];

/**
 * Finds the file that the word after "embedding:" names, with or without its ending; with commas that end the word, else
 * without them. `name` is the part of the word that is the name. Throws path.outside for a name that leads out of the
 * embeddings' folders.
 */
export function findEmbedding(
  folders: ModelFolders,
  word: string,
): { readonly file: ModelFile | undefined; readonly name: string } {
  const bare = withoutCommas(word);
  for (const name of bare === word ? [word] : [word, bare]) {
    for (const ending of ENDINGS) {
      const file = folders.find("embeddings", name + ending);
      if (file !== undefined) return { file, name };
    }
  }
  return { file: undefined, name: bare };
}

/** Sentence on an embedding that no file has the name of. */
export function noSuchEmbedding(folders: ModelFolders, name: string): string {
  const [near] = nearest(name, folders.list("embeddings"));
  const hint = near === undefined ? "" : ` Did you mean ${describe(near)}?`;
  return `Embedding ${describe(name)} is ignored: there is no such file in the embeddings folders.${hint}`;
}
