import { inputError } from "../../../base/errors.js";
import { cos, sin } from "../../../native/elementary.js";
import { linspace } from "../../../tensor/sampling/linspace.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, float, int, sigmas } from "../../inputs.js";

/** Shares of a step's way by shares of its steps, in float32. */
const SPACINGS: Record<"linear" | "cosine" | "sine", (share: number) => number> = {
  linear: (share) => share,
  cosine: (share) => Math.fround(sin(quarter(share))),
  sine: (share) => Math.fround(1 - Math.fround(cos(quarter(share)))),
};

const quarter = (share: number): number => Math.fround(Math.fround(share * Math.fround(Math.PI)) / 2);

const LEVEL = { max: 20000, step: 0.01, round: false } as const;

/** Most sigmas of a result: a chain of these nodes multiplies them at each. */
const MOST = 2_000_000;

export const extendIntermediateSigmas = defineNode({
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
    if (sigmas.size * steps > MOST)
      throw inputError("input.invalid", { input: "sigmas" }, `at most ${Math.floor(MOST / steps)} sigmas`, sigmas);
    const start = start_at_sigma < 0 ? Number.POSITIVE_INFINITY : start_at_sigma;
    const shares = linspace(0, 1, steps + 1)
      .slice(1, -1)
      .map(SPACINGS[spacing]);
    const levels = [...sigmas.data].flatMap((sigma, i, all) => {
      const way = Math.fround((all[i + 1] ?? sigma) - sigma);
      const isDivided = i + 1 < all.length && end_at_sigma <= sigma && sigma <= start;
      return isDivided ? [sigma, ...shares.map((share) => Math.fround(share * way) + sigma)] : [sigma];
    });
    return { SIGMAS: Tensor.from(levels, [levels.length]) };
  },
});
