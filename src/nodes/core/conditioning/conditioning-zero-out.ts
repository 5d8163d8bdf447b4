import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { conditioning } from "../../inputs.js";

/** Options that are zeroed with the tokens. */
const ENCODINGS = ["pooled_output", "conditioning_lyrics"] as const;

export const conditioningZeroOut = defineNode({
  key: "ConditioningZeroOut",
  displayName: "Conditioning (Zero Out)",
  category: "advanced/conditioning",
  description: "The conditioning with zeros for its encodings.",
  inputs: { conditioning: conditioning() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning }) => ({
    CONDITIONING: conditioning.map(([tokens, options]) => [Tensor.zeros(tokens.shape), zeroed(options)]),
  }),
});

function zeroed(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = { ...options };
  for (const name of ENCODINGS) {
    const value = copy[name];
    if (value instanceof Tensor) copy[name] = Tensor.zeros(value.shape);
  }
  return copy;
}
