import { describe, LatentkitError } from "../../base/errors.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Adapter, ModelPart } from "./model-part.js";
import { buildT5, type T5Config, t5Buckets, t5Work } from "./networks/t5.js";
import type { Runtime } from "./runtime/runtime.js";
import { t5Tokens } from "./t5-tokens.js";
import { T5_END, T5_PAD } from "./tokenizer/tokenize-t5.js";
import type { LoraTarget } from "./weights/lora/names.js";

/** Four times the longest prompt that models were trained with. Scores of all heads grow with the square of the length. */
const MOST_TOKENS = 2048;

/** A T5 encoder whose graph is built over the weights of a file. */
export class BuiltT5 {
  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<T5Config>,
  ) {}

  get target(): LoraTarget {
    return { kind: "t5", weights: this.part.weights };
  }

  adapted(adapter: Adapter): BuiltT5 {
    return new BuiltT5(this.runtime, this.part.adapted(adapter));
  }

  /**
   * Encodes a prompt of at least `fewest` tokens with padding [1, tokens, hidden]: a token of weight w stands at w times
   * its distance from an empty prompt's. Fails with value.out-of-range for a prompt that is too long.
   */
  async encode(text: string, fewest: number): Promise<Tensor> {
    const { ids, weights } = t5Tokens(text, fewest);
    if (ids.length > MOST_TOKENS) {
      const message = `${this.part.label}: expected a prompt of at most ${MOST_TOKENS} tokens, received ${ids.length}: ${describe(text)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    const cond = await this.#states(ids);
    if (weights.every((weight) => weight === 1)) return cond;
    const empty = await this.#states(ids.map((_, at) => (at === 0 ? T5_END : T5_PAD)));
    return weighted(cond, empty, weights);
  }

  async #states(ids: readonly number[]): Promise<Tensor> {
    const { length } = ids;
    const feeds = {
      tokens: { int64: [...ids], shape: [1, length] },
      buckets: { int64: t5Buckets(length), shape: [length, length] },
    };
    const work = t5Work(this.part.config);
    const session = this.part.session("text encoder T5", (network, config) => buildT5(network, config), { work });
    const { cond } = await this.runtime.run(session, feeds, { isShared: true });
    return cond!;
  }
}

/** (z - empty) · weight + empty at each place. */
function weighted(cond: Tensor, empty: Tensor, weights: readonly number[]): Tensor {
  const out = Tensor.unfilled(cond.shape);
  const width = cond.shape[2]!;
  for (let i = 0; i < out.size; i++) {
    const from = empty.data[i]!;
    out.data[i] = Math.fround(Math.fround(cond.data[i]! - from) * weights[Math.floor(i / width)]!) + from;
  }
  return out;
}
