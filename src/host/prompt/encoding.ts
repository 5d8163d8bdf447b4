import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { ClipEncoder } from "../types.js";
import { CHUNK_LENGTH, emptyChunk } from "./tokenize.js";

/** Encodings of chunks, back to back: [chunks, 77, dim] as one array. */
export interface Encoding {
  readonly cond: Float32Array;
  readonly dim: number;
  /** Pooled output of the first chunk, if the encoder has one. */
  readonly pooled: Float32Array | undefined;
}

/** Token that replaces a masked word, "_" in CLIP's vocabulary: of all it carries the least meaning. */
export const MASK_TOKEN = 266;

/** Limit of chunks in one prompt, with all its parts and schedule texts: 19,200 tokens. */
const MAX_CHUNKS = 256;
/** Limit of chunks that one encoder encodes, with those of interpretations that encode variants. */
const MAX_ENCODED = 4096;
/** Chunks of one call: bounds the memory of a real encoder. */
const BATCH = 32;

/** Budget of one encodePrompt: a hostile prompt fails before its tensors are allocated. */
export class Budget {
  #chunks = 0;
  #encoded = 0;

  spendChunks(count: number): void {
    this.#chunks += count;
    if (this.#chunks > MAX_CHUNKS) throw tooLong(`it has ${this.#chunks} chunks of 75 tokens`, MAX_CHUNKS);
  }

  spendEncoded(count: number): void {
    this.#encoded += count;
    if (this.#encoded > MAX_ENCODED)
      throw tooLong(`its weights need ${this.#encoded} chunks to be encoded`, MAX_ENCODED);
  }
}

const tooLong = (fact: string, most: number): LatentkitError =>
  new LatentkitError("value.out-of-range", `Prompt: ${fact}; at most ${most}.`);

/** Encodes lists of chunks in bounded batches and checks what the encoder returns. */
export class ChunkEncoder {
  readonly encoder: ClipEncoder;
  readonly #budget: Budget;
  readonly #emptyPad: number;

  /** `emptyPad` fills the empty prompt that weights are measured from. */
  constructor(encoder: ClipEncoder, budget: Budget, emptyPad: number) {
    this.encoder = encoder;
    this.#budget = budget;
    this.#emptyPad = emptyPad;
  }

  async encode(chunks: readonly number[][]): Promise<Encoding> {
    this.#budget.spendEncoded(chunks.length);
    const first = await this.#encodeBatch(chunks.slice(0, BATCH));
    if (chunks.length <= BATCH) return first;
    const cond = new Float32Array(chunks.length * CHUNK_LENGTH * first.dim);
    cond.set(first.cond);
    for (let from = BATCH; from < chunks.length; from += BATCH) {
      const batch = await this.#encodeBatch(chunks.slice(from, from + BATCH));
      if (batch.dim !== first.dim) throw this.#badResult(`${first.dim} values a token`, `${batch.dim}`);
      cond.set(batch.cond, from * CHUNK_LENGTH * first.dim);
    }
    return { ...first, cond };
  }

  /** Encodes an empty prompt, [77, dim]. */
  encodeEmpty(): Promise<Encoding> {
    return this.encode([emptyChunk(this.encoder, this.#emptyPad)]);
  }

  async #encodeBatch(chunks: number[][]): Promise<Encoding> {
    const { cond, pooled } = await this.encoder.encode(chunks);
    const [count, length, dim] = cond instanceof Tensor ? cond.shape : [];
    if (count !== chunks.length || length !== CHUNK_LENGTH || dim === undefined || cond.shape.length !== 3) {
      throw this.#badResult(`cond of shape [${chunks.length}, ${CHUNK_LENGTH}, dim]`, describe(cond));
    }
    const width = pooled?.shape[1];
    if (pooled !== undefined && (pooled.shape.length !== 2 || pooled.shape[0] !== chunks.length)) {
      throw this.#badResult(`pooled of shape [${chunks.length}, dim]`, describe(pooled));
    }
    return { cond: cond.data, dim, pooled: pooled?.data.slice(0, width) };
  }

  #badResult(expected: string, received: string): LatentkitError {
    return new LatentkitError(
      "value.invalid",
      `Clip encoder "${this.encoder.name}": expected encode() to return ${expected}, received ${received}.`,
    );
  }
}

/** Last position of the first chunk, which interpretations that mask tokens return as pooled. */
export function lastPosition({ cond, dim, pooled }: Encoding): Float32Array | undefined {
  // an encoder whose pooled output has another width keeps its own
  if (pooled?.length !== dim) return pooled;
  return cond.slice((CHUNK_LENGTH - 1) * dim, CHUNK_LENGTH * dim);
}
