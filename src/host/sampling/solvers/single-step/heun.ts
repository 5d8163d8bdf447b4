import type { Solver } from "../../solver.js";
import { beginChurned, CHURN, type ChurnOptions } from "./churn.js";
import { along, eulerTo, evaluate, integrate } from "./step.js";

/** Heun's method (Karras et al., 2022, Algorithm 2): the mean of the slopes at both ends of a step. */
export const heun: Solver<ChurnOptions> = {
  noise: "global",
  options: CHURN,
  sample: (start, context, options) =>
    integrate(start, context, async (x, step) => {
      const { next } = step;
      const first = await beginChurned(context, x, step, options);
      const predicted = context.sum(eulerTo(first, next));
      if (next === 0) return [[1, predicted]];
      const last = await evaluate(context, predicted, next);
      const half = (next - first.sigma) / 2;
      return along(first.x, [
        [half, first],
        [half, last],
      ]);
    }),
};

/**
 * Heun++ with up to three slopes, the later ones weighted by their noise levels over the first of the schedule. The last
 * two steps have two slopes and one; the last noise level counts as the end also where it is not 0.
 */
export const heunpp2: Solver<ChurnOptions> = {
  noise: "global",
  options: CHURN,
  sample: (start, context, options) => {
    const { sigmas } = context;
    const end = sigmas[sigmas.length - 1]!;
    return integrate(start, context, async (x, step) => {
      const { index, next } = step;
      const first = await beginChurned(context, x, step, options, true);
      const predicted = context.sum(eulerTo(first, next));
      if (next === end) return [[1, predicted]];
      const distance = next - first.sigma;
      const second = await evaluate(context, predicted, next);
      const afterNext = sigmas[index + 2]!;
      if (afterNext === end) {
        const weight = next / (2 * sigmas[0]!);
        return along(first.x, [
          [distance * (1 - weight), first],
          [distance * weight, second],
        ]);
      }
      const third = await evaluate(context, context.sum(eulerTo(second, afterNext)), afterNext);
      const weights = [next / (3 * sigmas[0]!), afterNext / (3 * sigmas[0]!)] as const;
      return along(first.x, [
        [distance * (1 - weights[0] - weights[1]), first],
        [distance * weights[0], second],
        [distance * weights[1], third],
      ]);
    });
  },
};
