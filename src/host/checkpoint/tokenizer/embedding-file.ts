import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { describe, LatentkitError } from "../../../base/errors.js";
import { readSafetensors, type StoredTensor, toTensor } from "../../../io/safetensors/read.js";
import type { ModelFile } from "../files/model-folders.js";

/** Files with more are no embedding: 16 MiB hold a thousand rows of the widest encoder. */
const MAX_BYTES = 2 ** 24;
/** Name of the tensor of files for one encoder. */
const OWN_NAME = "emb_params";
const READABLE = /\.(?:safetensors|sft)$/i;

/**
 * Reads the rows of a textual inversion for an encoder, [n, width] as one array; or why it has none for it, in words.
 * Throws model.unsupported for pickles, which could run code, model.invalid for damaged files.
 */
export function readEmbedding(
  file: ModelFile,
  encoder: { readonly name: string; readonly width: number },
): Float32Array | string {
  if (!READABLE.test(file.name)) {
    const message = `${subject(file)}: expected a .safetensors file, received a pickle, which could run code and is never read.`;
    throw new LatentkitError("model.unsupported", message, { received: describe(file.name) });
  }
  try {
    const tensor = tensorOf(readSafetensors(readBounded(file)).tensors, encoder.name);
    if (tensor === undefined) return `it has no tensor ${OWN_NAME} or clip_${encoder.name}`;
    const width = tensor.shape.at(-1);
    if (tensor.shape.length < 1 || tensor.shape.length > 2 || width !== encoder.width)
      return `its shape is [${tensor.shape.join(", ")}], and the encoder has ${encoder.width} values a token`;
    // a tensor's memory is reused, these rows stay
    return toTensor(tensor).data.slice();
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Subject of a message. */
export const subject = ({ name }: ModelFile): string => `Embedding ${describe(name)}`;

function readBounded(file: ModelFile): Buffer {
  // O_NONBLOCK: a pipe that has replaced the file does not wait for its writer
  const descriptor = openSync(file.path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(descriptor);
    if (stats.isFile() && stats.size <= MAX_BYTES) return readFileSync(descriptor);
    const expected = `a file of at most ${MAX_BYTES} bytes`;
    throw new LatentkitError("model.invalid", `expected ${expected}, received one of ${stats.size}.`);
  } finally {
    closeSync(descriptor);
  }
}

function tensorOf(tensors: ReadonlyMap<string, StoredTensor>, encoder: string): StoredTensor | undefined {
  const named = tensors.get(`clip_${encoder}`) ?? tensors.get(OWN_NAME);
  if (named !== undefined || tensors.size !== 1) return named;
  const [only] = tensors.values();
  return only;
}

function unreadable(file: ModelFile, error: unknown): LatentkitError {
  if (error instanceof LatentkitError)
    return new LatentkitError("model.invalid", `${subject(file)}: ${error.message}`, {}, { cause: error });
  const { code } = error as NodeJS.ErrnoException;
  return new LatentkitError("file.read-failed", `${subject(file)} cannot be read (${code}).`, {}, { cause: error });
}
