import type { Tensor } from "../../../../tensor/tensor.js";
import type { Solver } from "../../solver.js";
import { ancestralTime, DpmStep, rangeOf, sigmaAt, withNoise } from "./dpm-solver.js";
import type { AncestralOptions } from "./euler.js";
import { requireFalling } from "./required.js";
import { begin } from "./step.js";

/** DPM-Solver-Fast: as many model calls as the schedule has steps, in steps of third order of equal length in log(sigma). */
export const dpmFast: Solver<AncestralOptions> = {
  noise: "stream",
  options: { eta: 0, s_noise: 1 },
  sample: async (start, context, { eta, s_noise }) => {
    const calls = context.sigmas.length - 1;
    if (calls < 1) return start;
    const range = rangeOf(context.sigmas);
    if (eta !== 0) requireFalling("dpm_fast", range, eta);
    const orders = ordersOf(calls);
    const length = range.end - range.start;
    let x = start;
    for (const [index, order] of orders.entries()) {
      const t = Math.fround(range.start + (length * index) / orders.length);
      const next =
        index + 1 === orders.length ? range.end : Math.fround(range.start + (length * (index + 1)) / orders.length);
      const first = await begin(context, x, sigmaAt(t), index);
      const { down, up } = ancestralTime(t, next, range.end, eta);
      x = withNoise(context, await solve(new DpmStep(context, first, t, down), order), t, next, s_noise * up);
      context.keepOnly([x]);
    }
    return x;
  },
};

/** Orders of the steps: as many of 3 as fit, and 2 and 1 so that their sum is the number of calls. */
function ordersOf(calls: number): number[] {
  const rest = calls % 3 === 0 ? [2, 1] : [calls % 3];
  return [...new Array<number>(Math.floor(calls / 3) + 1 - rest.length).fill(3), ...rest];
}

async function solve(step: DpmStep, order: number): Promise<Tensor> {
  if (order === 1) return step.end1();
  if (order === 2) return step.end2(await step.second(1 / 2));
  return step.end3(await step.third(2 / 3, await step.second(1 / 3)));
}
