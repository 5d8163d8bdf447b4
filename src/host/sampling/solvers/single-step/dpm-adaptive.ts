import { describe, LatentkitError } from "../../../../base/errors.js";
import { scaledError } from "../../../../tensor/ops.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../../solver.js";
import { ancestralTime, DpmStep, rangeOf, sigmaAt, withNoise } from "./dpm-solver.js";
import type { AncestralOptions } from "./euler.js";
import { requireFalling, requirePositive } from "./required.js";
import { evaluate } from "./step.js";
import { StepSize, type StepSizeOptions } from "./step-size.js";

interface DpmAdaptiveOptions extends AncestralOptions, StepSizeOptions {
  /** Order of the solver, 2 or 3; the error is the difference to that of one order less. */
  readonly order: number;
  /** Relative and absolute error that a step may have. */
  readonly rtol: number;
  readonly atol: number;
}

/** Repetitions of one step, in a row, after which no size is small enough: each makes it smaller. */
const MOST_REJECTIONS = 100;

/** Steps that a run takes at most, repeated ones included. */
const MOST_STEPS = 10_000;

/** Distance from the end, in log(sigma), at which a run is complete. */
const NEAR_END = 1e-5;

/** DPM-Solver-12 or 23: steps of a size that keeps their error in bounds, whatever the number of the schedule's. */
export const dpmAdaptive: Solver<DpmAdaptiveOptions> = {
  noise: "stream",
  options: {
    order: 3,
    rtol: 0.05,
    atol: 0.0078,
    h_init: 0.05,
    pcoeff: 0,
    icoeff: 1,
    dcoeff: 0,
    accept_safety: 0.81,
    eta: 0,
    s_noise: 1,
  },
  sample: async (start, context, options) => {
    const { order, eta } = options;
    if (order !== 2 && order !== 3) {
      const message = `dpm_adaptive, order: expected 2 or 3, received ${describe(order)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    requirePositive("dpm_adaptive", "h_init", options.h_init);
    if (context.sigmas.length < 2) return start;
    const range = rangeOf(context.sigmas);
    if (eta !== 0) requireFalling("dpm_adaptive", range, eta);
    return adapt(start, context, options, range);
  },
};

async function adapt(
  start: Tensor,
  context: SolverContext,
  options: DpmAdaptiveOptions,
  range: { readonly start: number; readonly end: number },
): Promise<Tensor> {
  const { order, rtol, atol, eta, s_noise } = options;
  const forward = range.end > range.start;
  const nearer = forward ? Math.min : Math.max;
  const size = new StepSize(options, eta ? 1.5 : order, forward);
  let [x, previous] = [start, start];
  let rejections = 0;
  let t = range.start;
  for (let index = 0; forward ? t < range.end - NEAR_END : t > range.end + NEAR_END; index++) {
    const next = nearer(range.end, Math.fround(t + size.size));
    const first = await evaluate(context, x, sigmaAt(t));
    const { down, up } = ancestralTime(t, next, range.end, eta);
    const { low, high } = await bothOrders(new DpmStep(context, first, t, down), order);
    const error = scaledError(low, high, previous, atol, rtol);
    rejections = size.accepts(error) ? 0 : rejections + 1;
    requireProgress(error, first.sigma, rejections, next !== t);
    if (index === MOST_STEPS) throw tooManySteps(first.sigma);
    context.report(index, first.denoised);
    if (rejections === 0) {
      previous = low;
      x = withNoise(context, high, t, next, s_noise * up);
      t = next;
    }
    context.keepOnly([x, previous]);
  }
  return x;
}

/** The end of a step by the solver of this order and by that of one less, which share their points. */
async function bothOrders(step: DpmStep, order: number): Promise<{ readonly low: Tensor; readonly high: Tensor }> {
  if (order === 2) return { low: step.end1(), high: step.end2(await step.second(1 / 2)) };
  const second = await step.second(1 / 3);
  const third = await step.third(2 / 3, second);
  return { low: step.end2(second), high: step.end3(third) };
}

function tooManySteps(sigma: number): LatentkitError {
  const expected = `options with which ${MOST_STEPS} steps are enough`;
  return new LatentkitError(
    "value.out-of-range",
    `dpm_adaptive: expected ${expected}, received more at sigma ${sigma}.`,
  );
}

/** Refuses a run that would never end. */
function requireProgress(error: number, sigma: number, rejections: number, hasMoved: boolean): void {
  if (Number.isFinite(error) && rejections < MOST_REJECTIONS && hasMoved) return;
  throw new LatentkitError(
    "value.out-of-range",
    `dpm_adaptive: expected steps that advance with these options and this model, received an error of ${error} at sigma ${sigma}.`,
  );
}
