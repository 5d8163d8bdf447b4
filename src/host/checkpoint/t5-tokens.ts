import { parsePrompt } from "../prompt/index.js";
import { T5_END, T5_PAD, tokenizeT5 } from "./tokenizer/tokenize-t5.js";

/** The tokens of a prompt, each with its weight. */
export interface T5Tokens {
  readonly ids: readonly number[];
  readonly weights: readonly number[];
}

/** Tokens of a prompt with weights, its end, and padding up to `fewest`: each segment is split by itself. */
export function t5Tokens(text: string, fewest: number): T5Tokens {
  const ids: number[] = [];
  const weights: number[] = [];
  for (const [segment, weight] of parsePrompt(text))
    for (const id of tokenizeT5(segment)) {
      ids.push(id);
      weights.push(weight);
    }
  ids.push(T5_END);
  while (ids.length < fewest) ids.push(T5_PAD);
  while (weights.length < ids.length) weights.push(1);
  return { ids, weights };
}
