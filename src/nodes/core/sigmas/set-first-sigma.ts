import { inputError } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { float, sigmas } from "../../inputs.js";
import { part } from "./part.js";

const KEY = "SetFirstSigma";

export const setFirstSigma = defineNode({
  key: KEY,
  displayName: "SetFirstSigma",
  category: "sampling/custom_sampling/sigmas",
  description: "Replaces the first sigma.",
  inputs: { sigmas: sigmas(), sigma: float({ default: 136, min: 0, max: 20000, step: 0.001, round: false }) },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ sigmas, sigma }) => {
    if (sigmas.size === 0)
      throw inputError("input.invalid", { node: KEY, input: "sigmas" }, "at least one sigma", sigmas);
    const changed = part(sigmas);
    changed.data[0] = sigma;
    return { SIGMAS: changed };
  },
});
