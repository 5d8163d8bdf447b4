import { inputError } from "../../base/errors.js";
import { cos, sin } from "../../native/elementary.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { percentToSigma } from "../../tensor/sampling/noise-level.js";
import { linspace } from "../../tensor/sampling/spaced-sigmas.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { boolean, choice, float, int, model, sigmas, text } from "../inputs.js";

const LEVEL = { max: 20000, step: 0.01, round: false } as const;

const SPLIT = [
  { name: "high_sigmas", type: "SIGMAS" },
  { name: "low_sigmas", type: "SIGMAS" },
] as const;

export const sigmaNodes = [
  defineNode({
    key: "SplitSigmas",
    category: "sampling/custom_sampling/sigmas",
    description: "Splits sigmas at a step; both parts contain the sigma there.",
    inputs: { sigmas: sigmas(), step: int({ default: 0, min: 0, max: 10000 }) },
    outputs: SPLIT,
    run: ({ sigmas, step }) => ({ high_sigmas: part(sigmas, 0, step + 1), low_sigmas: part(sigmas, step) }),
  }),
  defineNode({
    key: "SplitSigmasDenoise",
    category: "sampling/custom_sampling/sigmas",
    description: "Splits sigmas so that the second part has this share of the steps.",
    inputs: { sigmas: sigmas(), denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }) },
    outputs: SPLIT,
    run: ({ sigmas, denoise }) => {
      const taken = roundHalfEven(Math.max(sigmas.size - 1, 0) * denoise);
      return { high_sigmas: part(sigmas, 0, -taken), low_sigmas: part(sigmas, -(taken + 1)) };
    },
  }),
  defineNode({
    key: "FlipSigmas",
    category: "sampling/custom_sampling/sigmas",
    description: "Sigmas from the last to the first, to add noise step by step; a leading 0 becomes 0.0001.",
    inputs: { sigmas: sigmas() },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ sigmas }) => {
      const flipped = part(sigmas);
      flipped.data.reverse();
      if (flipped.data[0] === 0) flipped.data[0] = 0.0001;
      return { SIGMAS: flipped };
    },
  }),
  defineNode({
    key: "SetFirstSigma",
    displayName: "SetFirstSigma",
    category: "sampling/custom_sampling/sigmas",
    description: "Replaces the first sigma.",
    inputs: { sigmas: sigmas(), sigma: float({ default: 136, min: 0, max: 20000, step: 0.001, round: false }) },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ sigmas, sigma }) => {
      if (sigmas.size === 0)
        throw inputError("input.invalid", { node: "SetFirstSigma", input: "sigmas" }, "at least one sigma", sigmas);
      const changed = part(sigmas);
      changed.data[0] = sigma;
      return { SIGMAS: changed };
    },
  }),
  defineNode({
    key: "ExtendIntermediateSigmas",
    category: "sampling/custom_sampling/sigmas",
    description: "Divides each step that begins between two noise levels into several.",
    inputs: {
      sigmas: sigmas(),
      steps: int({ default: 2, min: 1, max: 100 }),
      start_at_sigma: float({
        ...LEVEL,
        default: -1,
        min: -1,
        tooltip: "Highest noise level whose step is divided; below 0: no limit.",
      }),
      end_at_sigma: float({
        ...LEVEL,
        default: 12,
        min: 0,
        tooltip: "Lowest noise level whose step is divided.",
      }),
      spacing: choice(["linear", "cosine", "sine"]),
    },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ sigmas, steps, start_at_sigma, end_at_sigma, spacing }) => {
      if (sigmas.size * steps > MOST_DIVIDED)
        throw inputError(
          "input.invalid",
          { input: "sigmas" },
          `at most ${Math.floor(MOST_DIVIDED / steps)} sigmas`,
          sigmas,
        );
      const start = start_at_sigma < 0 ? Number.POSITIVE_INFINITY : start_at_sigma;
      const shares = linspace(0, 1, steps + 1)
        .slice(1, -1)
        .map(SPACINGS[spacing]);
      const levels = [...sigmas.data].flatMap((sigma, i, all) => {
        const way = Math.fround((all[i + 1] ?? sigma) - sigma);
        const isDivided = i + 1 < all.length && end_at_sigma <= sigma && sigma <= start;
        return isDivided ? [sigma, ...shares.map((share) => Math.fround(share * way) + sigma)] : [sigma];
      });
      return { SIGMAS: sigmasTensor(levels) };
    },
  }),
  defineNode({
    key: "SamplingPercentToSigma",
    category: "sampling/custom_sampling/sigmas",
    description:
      "The noise level that a share of sampling has reached. At 0 it is 999999999.9 (1 for flow models), at 1 it is 0.",
    inputs: {
      model: model(),
      sampling_percent: float({ default: 0, min: 0, max: 1, step: 0.0001 }),
      return_actual_sigma: boolean({
        default: false,
        tooltip: "At 0 and 1, returns the largest and smallest sigma of the model instead.",
      }),
    },
    outputs: [{ name: "sigma_value", type: "FLOAT" }],
    run: ({ model, sampling_percent, return_actual_sigma }) => {
      const { sampling } = model;
      if (return_actual_sigma && sampling_percent === 0) return { sigma_value: sampling.sigmaMax };
      if (return_actual_sigma && sampling_percent === 1) return { sigma_value: sampling.sigmaMin };
      return { sigma_value: percentToSigma(sampling, sampling_percent) };
    },
  }),
  defineNode({
    key: "ManualSigmas",
    displayName: "ManualSigmas",
    category: "sampling/custom_sampling/sigmas",
    description: "Sigmas as numbers, separated by commas, semicolons or spaces.",
    inputs: { sigmas: text({ default: "1, 0.5", multiline: false }) },
    outputs: { SIGMAS: "SIGMAS" },
    run: ({ sigmas }) => {
      const at = { node: "ManualSigmas", input: "sigmas" };
      const words = sigmas.split(/[\s,;]/).filter((word) => word !== "");
      if (words.length > LONGEST) throw inputError("input.invalid", at, `at most ${LONGEST} numbers`, sigmas);
      for (const word of words) {
        const sigma = Math.fround(Number(word));
        if (!(sigma >= 0 && sigma < Infinity)) throw inputError("input.invalid", at, "finite numbers from 0", word);
      }
      return { SIGMAS: sigmasTensor(words.map(Number)) };
    },
  }),
] as const;

/** Noise levels as the value of a SIGMAS socket. */
export const sigmasTensor = (levels: Float32Array | readonly number[]): Tensor => Tensor.from(levels, [levels.length]);

/** A copy of the sigmas from one index to before another; negative ones count from the end. */
const part = ({ data }: Tensor, from?: number, to?: number): Tensor => sigmasTensor(data.slice(from, to));

const quarter = (share: number): number => Math.fround(Math.fround(share * Math.fround(Math.PI)) / 2);

/** Shares of a step's way by shares of its steps, in float32. */
const SPACINGS: Record<"linear" | "cosine" | "sine", (share: number) => number> = {
  linear: (share) => share,
  cosine: (share) => Math.fround(sin(quarter(share))),
  sine: (share) => Math.fround(1 - Math.fround(cos(quarter(share)))),
};

/** Most sigmas of a result: a chain of these nodes multiplies them at each. */
const MOST_DIVIDED = 2_000_000;

/** Sigmas of the longest schedule. */
const LONGEST = 10_001;
