import { inputError } from "../../../base/errors.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";

const KEY = "ManualSigmas";
/** Sigmas of the longest schedule. */
const MOST = 10_001;

export const manualSigmas = defineNode({
  key: KEY,
  displayName: "ManualSigmas",
  category: "sampling/custom_sampling/sigmas",
  description: "Sigmas as numbers, separated by commas, semicolons or spaces.",
  inputs: { sigmas: text({ default: "1, 0.5", multiline: false }) },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ sigmas }) => {
    const at = { node: KEY, input: "sigmas" };
    const words = sigmas.split(/[\s,;]/).filter((word) => word !== "");
    if (words.length > MOST) throw inputError("input.invalid", at, `at most ${MOST} numbers`, sigmas);
    for (const word of words) {
      const sigma = Math.fround(Number(word));
      if (!(sigma >= 0 && sigma < Infinity)) throw inputError("input.invalid", at, "finite numbers from 0", word);
    }
    return { SIGMAS: Tensor.from(words.map(Number), [words.length]) };
  },
});
