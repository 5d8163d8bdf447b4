import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { describe, LatentkitError } from "../../../base/errors.js";
import { headerLength, LENGTH_BYTES, parseHeader, type StoredEntry } from "../../../io/safetensors/header.js";
import { toTensor } from "../../../io/safetensors/read.js";
import type { ModelFile } from "../files/model-folders.js";
import { damageOf, otherFormat, START_BYTES } from "../files/other-format.js";

/** Tensors with more are no embedding: 16 MiB hold a thousand rows of the widest encoder. */
const MAX_BYTES = 2 ** 24;
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
 * Reads the header of a textual inversion alone: why it has no rows for each of some encoders, in words. Throws as
 * readEmbedding where no encoder can use the file.
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
export const leftOut = (file: ModelFile, problem: string): string => `${subject(file)} is left out: ${problem}.`;

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
  return other && `its shape is [${other.shape.join(", ")}], and the encoder has ${width} values a token`;
}

function rowsOf(descriptor: number, encoder: Encoder): Float32Array | string {
  const tensors = tensorsOf(tensorsIn(descriptor), encoder.name);
  const problem = problemOf(tensors, encoder);
  if (problem !== undefined) return problem;
  const bytes = tensors.reduce((sum, { from, to }) => sum + to - from, 0);
  if (bytes > MAX_BYTES) {
    const message = `expected an embedding of at most ${MAX_BYTES} bytes, received one of ${bytes}.`;
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

/** Bytes of a file. Throws model.invalid where it has become shorter. */
function readAt(descriptor: number, from: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let read = 0;
  for (let more = -1; more !== 0 && read < length; read += more)
    more = readSync(descriptor, bytes, read, length - read, from + read);
  if (read === length) return bytes;
  throw new LatentkitError("model.invalid", `expected ${length} bytes from byte ${from} on, received ${read}.`);
}

/** Tensors of an encoder's rows; none where the file has none for it. */
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
    const message = `expected ${name} alone, received ${describe(key)} too, which changes it in a way that latentkit does not know.`;
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
