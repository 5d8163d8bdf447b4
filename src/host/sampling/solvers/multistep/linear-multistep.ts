import { isFlow } from "../../../../tensor/sampling/noise-level.js";
import type { Solver } from "../../solver.js";
import { adams, lagrangeWeights } from "./adams.js";
import { requireWhole } from "./checks.js";

/** Linear multistep method with the exact integrals of Lagrange polynomials in sigma, as in k-diffusion. */
export const lms: Solver<{ order: number }> = {
  noise: "none",
  options: { order: 4 },
  async sample(x, context, { order }) {
    requireWhole("lms, order", order, 1, 100);
    return adams(x, context, { order, weights: (index, used) => lagrangeWeights(context.sigmas, index, used) });
  },
};

/** Adams-Bashforth coefficients of equal steps, by order, the newest derivative first. */
const EQUAL_STEPS = [[1], [3 / 2, -1 / 2], [23 / 12, -16 / 12, 5 / 12], [55 / 24, -59 / 24, 37 / 24, -9 / 24]] as const;

/** Improved pseudo linear multistep method: coefficients of equal steps for steps of any length (arXiv 2204.13902). */
export const ipndm: Solver<{ max_order: number }> = {
  noise: "none",
  options: { max_order: 4 },
  async sample(x, context, { max_order }) {
    requireWhole("ipndm, max_order", max_order, 2, 4);
    const { sigmas } = context;
    return adams(x, context, {
      order: max_order,
      weights: (index, order) =>
        EQUAL_STEPS[order - 1]!.map((weight) => weight * (sigmas[index + 1]! - sigmas[index]!)),
    });
  },
};

/** `ipndm` with coefficients for the steps' own lengths, as published: of orders 3 and 4 they are not Adams-Bashforth's. */
export const ipndmV: Solver<{ max_order: number }> = {
  noise: "none",
  options: { max_order: 4 },
  async sample(x, context, { max_order }) {
    requireWhole("ipndm_v, max_order", max_order, 2, 4);
    const { sigmas } = context;
    return adams(x, context, {
      order: max_order,
      weights: (index, order) => {
        const step = (back: number) => sigmas[index + 1 - back]! - sigmas[index - back]!;
        return variableWeights(Array.from({ length: order }, (_, back) => step(back)));
      },
    });
  },
};

/** Weights of the derivatives, the newest first, from the lengths of the steps, this one first. */
function variableWeights([h, h1, h2, h3]: readonly number[]): number[] {
  const weights = [h!, 0, 0, 0];
  const add = (coefficient: number, difference: readonly number[]) => {
    for (const [i, share] of difference.entries()) weights[i]! += h! * coefficient * share;
  };
  if (h1 === undefined) return weights.slice(0, 1);
  add(h! / (2 * h1), [1, -1]);
  if (h2 === undefined) return weights.slice(0, 2);
  const two = h! + h1;
  const ratio = h1 / h2;
  // as published: an exact integral has the factor on the whole bracket, not on the second part alone
  add((1 - ((h! / (3 * two)) * (h! * two)) / (h1 * (h1 + h2))) / 2, [1, -1 - ratio, ratio]);
  if (h3 === undefined) return weights.slice(0, 3);
  const three = two + h2;
  const length = (h! * two * three) / (h1 * (h1 + h2) * (h1 + h2 + h3));
  // as published: an exact integral subtracts the second part
  const third = (1 - h! / (3 * two)) / 2 + ((1 - h! / (2 * two)) * h!) / (6 * three);
  const chain = (h1 * (h1 + h2)) / (h2 * (h2 + h3));
  add(third * length, [1, -1 - ratio - chain, ratio + chain * (1 + h2 / h3), -chain * ratio]);
  return weights;
}

// decision 202
/**
 * CFG++ (arXiv 2406.08070) with a second-order Adams-Bashforth step: the guided estimate is the clean part, scaled as
 * the model scales its signal, and the negative side gives the direction of the noise. Only the sampler's name is
 * published with ComfyUI's list, so the method is this package's decision and unchecked against the reference.
 */
export const cfgppUd10Ab: Solver = {
  noise: "none",
  options: {},
  async sample(x, context) {
    const { sigmas, sampling } = context;
    return adams(x, context, {
      order: 2,
      separate: true,
      guidance: (next) => (isFlow(sampling) ? 1 - next : 1),
      weights: (index, order) => lagrangeWeights(sigmas, index, order),
    });
  },
};
