import { inputError } from "../../../base/errors.js";
import { joined } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { conditioning } from "../../inputs.js";
import { tokenSides } from "./conditioning-average.js";

export const conditioningConcat = defineNode({
  key: "ConditioningConcat",
  displayName: "Conditioning (Concat)",
  category: "conditioning",
  description: "Appends the tokens of the second conditioning's first entry to each entry of the first.",
  inputs: { conditioning_to: conditioning(), conditioning_from: conditioning() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning_to, conditioning_from }) => {
    const at = { input: "conditioning_from" };
    const [tokens] = conditioning_from[0] ?? [];
    if (tokens === undefined) throw inputError("input.invalid", at, "a conditioning with an entry", conditioning_from);
    for (const [own] of conditioning_to) {
      const [batch, , width] = tokenSides("conditioning_to", own);
      if (tokens.hasShape([batch, tokens.shape[1] ?? 0, width])) continue;
      throw inputError("input.invalid", at, `a conditioning of shape [${batch}, tokens, ${width}]`, tokens);
    }
    return { CONDITIONING: conditioning_to.map(([own, options]) => [joined([own, tokens], 1), { ...options }]) };
  },
});
