import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Clip, Conditioning } from "../types.js";
import type { ModelPart } from "./model-part.js";
import { buildQwen3, type Qwen3Config, qwen3Work } from "./networks/qwen3.js";
import { rotationTables } from "./networks/rotations.js";
import type { Runtime } from "./runtime/runtime.js";
import { tokenizeZImage } from "./tokenizer/tokenize-qwen.js";

const THETA = 1_000_000;
/** Eight times the longest prompt that Z-Image was trained with. The mask grows with the square of the length. */
const MOST_TOKENS = 4096;
const LOWEST = -3.4028234663852886e38;

/** The clip of Z-Image: a Qwen3 language model, whose graph is built over the weights of a file. It reads a prompt whole. */
export class Qwen3Clip implements Clip {
  readonly encoders = [];

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<Qwen3Config>,
  ) {}

  async encodeText(text: string): Promise<Conditioning> {
    const { config, label } = this.part;
    const tokens = tokenizeZImage(text.replace(/\\([()])/g, "$1"));
    const length = tokens.length;
    if (length > MOST_TOKENS) {
      const message = `${label}: expected a prompt of at most ${MOST_TOKENS} tokens, received ${length}: ${describe(text)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    const positions = Array.from({ length }, (_, at) => [at]);
    const { cos, sin } = rotationTables(positions, [config.headSize], THETA);
    const feeds = {
      tokens: { int64: tokens, shape: [1, length] },
      mask: causalMask(length),
      text_cos: cos,
      text_sin: sin,
    };
    const work = qwen3Work(this.part.config);
    const session = this.part.session("text encoder Qwen3", (network, config) => buildQwen3(network, config), { work });
    const { cond } = await this.runtime.run(session, feeds, { isShared: true });
    return [[cond!, {}]];
  }
}

/** [1, 1, S, S], added to scores: the lowest float where the key's token comes after the query's. */
function causalMask(length: number): Tensor {
  const mask = Tensor.zeros([1, 1, length, length]);
  for (let query = 0; query < length; query++) mask.data.fill(LOWEST, query * length + query + 1, (query + 1) * length);
  return mask;
}
