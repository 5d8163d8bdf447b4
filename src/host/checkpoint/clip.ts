import { describe, LatentkitError } from "../../base/errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Clip, ClipEncoder } from "../types.js";
import type { ModelPart } from "./model-part.js";
import { buildTextEncoder, type TextEncoderConfig } from "./networks/text-encoder.js";
import type { Family } from "./recognition/recognise.js";
import type { Runtime } from "./runtime/client.js";
import type { EmbeddingRows } from "./tokenizer/embedding-rows.js";
import { tokenizeClip } from "./tokenizer/tokenize.js";
import { END, START } from "./tokenizer/vocabulary.js";

/** A text encoder with the rows of textual inversions that it knows. */
export interface EncoderSource {
  readonly part: ModelPart<TextEncoderConfig>;
  readonly rows: EmbeddingRows;
}

/** Everything that a clip of a checkpoint is made of. */
export interface ClipSource {
  readonly runtime: Runtime;
  readonly encoders: readonly EncoderSource[];
  readonly family: Family;
  /** Layer that nodes ask for, -1 (the last) to -24; undefined: the family's own. */
  readonly layer?: number;
}

const LENGTH = 77;
const FIRST_LAYER = -24;

/** The text encoders of a checkpoint, which run in the runtime's process. */
export class CheckpointClip implements Clip {
  readonly encoders: readonly ClipEncoder[];

  constructor(readonly source: ClipSource) {
    this.encoders = source.encoders.map((encoder) => new CheckpointEncoder(encoder, source));
  }

  atLayer(layer: number): Clip {
    if (!Number.isInteger(layer) || layer < FIRST_LAYER || layer > -1) {
      const message = `Clip layer: expected a whole number from ${FIRST_LAYER} to -1, received ${describe(layer)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    return new CheckpointClip({ ...this.source, layer });
  }
}

// decision 223
/** One text encoder of a checkpoint. */
export class CheckpointEncoder implements ClipEncoder {
  readonly name: string;
  readonly start = START;
  readonly end = END;
  readonly pad: number;
  readonly length = LENGTH;

  constructor(
    readonly own: EncoderSource,
    readonly source: ClipSource,
  ) {
    this.name = own.part.config.name;
    // OpenCLIP fills a chunk with zeros
    this.pad = this.name === "l" ? END : 0;
  }

  tokenize(text: string): number[] {
    return tokenizeClip(text);
  }

  embedding(word: string): { readonly ids: readonly number[]; readonly rest: string } {
    return this.own.rows.lookUp(word);
  }

  async encode(chunks: number[][]): Promise<{ cond: Tensor; pooled?: Tensor }> {
    const { part, rows } = this.own;
    const output = outputLayer(this.source);
    const variant = `text encoder ${this.name}, layer ${output.layer}${output.finalNorm ? ", normalised" : ""}`;
    const session = part.session(variant, (network, config) => buildTextEncoder(network, config, output));
    const { tokens, embeddings } = rows.feed(chunks);
    const ids = { int64: tokens.flat(), shape: [tokens.length, LENGTH] };
    const { cond, pooled } = await this.source.runtime.run(session, { tokens: ids, embeddings });
    return { cond: cond!, pooled };
  }
}

/** The layer whose output is the context: for SD 1 the last, else the one before. SDXL has no final norm there. */
const outputLayer = ({ family, layer = family === "sd1" ? -1 : -2 }: ClipSource) => ({
  layer,
  finalNorm: family === "sd1" || family === "sd2",
});
