import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Clip, ClipEncoder } from "../types.js";
import { buildTextEncoder } from "./networks/text-encoder.js";
import { type Adapter, type Part, sessionOf } from "./part.js";
import type { Family, TextEncoderConfig } from "./recognition/recognise.js";
import type { Runtime } from "./runtime/sessions.js";
import type { PromptVocabulary } from "./tokenizer/vocabulary.js";

/** Everything that a clip of a checkpoint is made of. */
export interface ClipSource {
  readonly runtime: Runtime;
  readonly encoders: readonly Part<TextEncoderConfig>[];
  readonly family: Family;
  /** Layer that nodes ask for, -1 (the last) to -24; undefined: the family's own. */
  readonly layer?: number;
}

const START = 49406;
const END = 49407;
const LENGTH = 77;
const FIRST_LAYER = -24;

/** The text encoders of a checkpoint, which run in the runtime's process. */
export class CheckpointClip implements Clip {
  readonly encoders: readonly ClipEncoder[];

  constructor(readonly source: ClipSource) {
    this.encoders = source.encoders.map((part) => new CheckpointEncoder(part, source));
  }

  atLayer(layer: number): Clip {
    if (!Number.isInteger(layer) || layer < FIRST_LAYER || layer > -1) {
      const message = `Clip layer: expected a whole number from ${FIRST_LAYER} to -1, received ${describe(layer)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    return new CheckpointClip({ ...this.source, layer });
  }
}

export class CheckpointEncoder implements ClipEncoder {
  readonly name: string;
  readonly start = START;
  readonly end = END;
  readonly pad: number;
  readonly length = LENGTH;

  constructor(
    readonly part: Part<TextEncoderConfig>,
    readonly source: ClipSource,
  ) {
    this.name = part.config.name;
    this.pad = part.config.name === "l" ? END : 0;
  }

  tokenize(text: string): number[] {
    return tokenize(text);
  }

  async encode(chunks: number[][]): Promise<{ cond: Tensor; pooled?: Tensor }> {
    const { config } = this.part;
    const layer = outputLayer(config, this.source);
    const session = sessionOf(this.part, `${config.name}, layer ${layer.index}, ${layer.finalNorm}`, (network) =>
      buildTextEncoder(network, config, layer),
    );
    const tokens = { int64: chunks.flat(), shape: [chunks.length, LENGTH] };
    const { cond, pooled } = await this.source.runtime.run(session, { tokens, embeddings }, {});
    return { cond: cond!, pooled };
  }
}

/**
 * The layer whose output is the context. SD 1: the last; SD 2 and SDXL: the one before. SDXL has no final norm there, the
 * others do. A layer that the encoder does not have is its last.
 */
function outputLayer({ layers }: TextEncoderConfig, { family, layer }: ClipSource) {
  const own = family === "sd1" ? -1 : -2;
  const wanted = layer ?? own;
  if (-wanted > layers) return { layer: -1, finalNorm: true };
  return { layer: wanted, finalNorm: family === "sd1" || family === "sd2" };
}
