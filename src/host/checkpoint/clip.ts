import { describe, LatentkitError } from "../../base/errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { Clip, ClipEncoder, FoundEmbedding } from "../types.js";
import type { TextEncoderConfig, TextEncoderOptions } from "./networks/text-encoder.js";
import type { Family } from "./recognition/recognised.js";
import { tokenizeClip } from "./tokenizer/tokenize.js";
import { END, START } from "./tokenizer/vocabulary.js";

/** The network of a text encoder, from either format. */
export interface TextNetwork {
  readonly name: TextEncoderConfig["name"];
  /** Looks up a textual inversion, as ClipEncoder does. */
  embedding(word: string): FoundEmbedding;
  /** Encodes chunks of 77 ids to cond [chunks, 77, dim] and pooled [chunks, dim]. */
  encode(chunks: number[][], output: TextEncoderOptions): Promise<{ cond: Tensor; pooled?: Tensor }>;
}

/** Everything that a clip of a checkpoint is made of. */
export interface ClipSource {
  readonly encoders: readonly TextNetwork[];
  readonly family: Family;
  /** Layer that nodes ask for, -1 (the last) to -24; undefined: the family's own. */
  readonly layer?: number;
}

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
  readonly length = 77;

  constructor(
    readonly network: TextNetwork,
    readonly source: ClipSource,
  ) {
    this.name = network.name;
    // OpenCLIP fills a chunk with zeros
    this.pad = this.name === "l" ? END : 0;
  }

  tokenize(text: string): number[] {
    return tokenizeClip(text);
  }

  embedding(word: string): FoundEmbedding {
    return this.network.embedding(word);
  }

  encode(chunks: number[][]): Promise<{ cond: Tensor; pooled?: Tensor }> {
    return this.network.encode(chunks, outputLayer(this.source));
  }
}

/** The layer that a family is trained with: for SD 1 the last, else the one before. */
export const ownLayer = (family: Family): number => (family === "sd1" ? -1 : -2);

/** The layer whose output is the context. SDXL has no final norm there. */
const outputLayer = ({ family, layer = ownLayer(family) }: ClipSource): TextEncoderOptions => ({
  layer,
  finalNorm: family === "sd1" || family === "sd2",
});
