import type { Tensor } from "../../tensor/tensor.js";
import type { FoundEmbedding } from "../types.js";
import type { TextNetwork } from "./clip.js";
import type { ModelPart } from "./model-part.js";
import { FLOAT_BYTES } from "./networks/layers.js";
import { buildTextEncoder, type TextEncoderConfig, type TextEncoderOptions } from "./networks/text-encoder.js";
import type { Runtime } from "./runtime/runtime.js";
import type { EmbeddingRows } from "./tokenizer/embedding-rows.js";

/** A text encoder whose graph is built over the weights of a file, with the rows of textual inversions that it knows. */
export class BuiltTextEncoder implements TextNetwork {
  readonly name: TextEncoderConfig["name"];

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<TextEncoderConfig>,
    readonly rows: EmbeddingRows,
  ) {
    this.name = part.config.name;
  }

  embedding(word: string): FoundEmbedding {
    return this.rows.lookUp(word);
  }

  async encode(chunks: number[][], output: TextEncoderOptions): Promise<{ cond: Tensor; pooled?: Tensor }> {
    const { layer, finalNorm } = output;
    const variant = `text encoder ${this.name}, layer ${layer}${finalNorm ? ", normalised" : ""}`;
    const { config } = this.part;
    const work = { tokens: FLOAT_BYTES * (2 * config.mlp + 8 * config.hidden) };
    const session = this.part.session(variant, (network) => buildTextEncoder(network, config, output), { work });
    const { tokens, embeddings } = this.rows.feed(chunks);
    const ids = { int64: tokens.flat(), shape: [tokens.length, config.positions] };
    const { cond, pooled } = await this.runtime.run(session, { tokens: ids, embeddings }, { isShared: true });
    return { cond: cond!, pooled };
  }
}
