import { exp, expm1 } from "../../../../native/elementary.js";
import type { Term } from "../../../../tensor/ops.js";
import { halfLogSnr } from "../../../../tensor/sampling/noise-level.js";
import { withSignal } from "../../../../tensor/sampling/percent-to-sigma.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { Solver, SolverContext } from "../../solver.js";
import { requireOneOf } from "./checks.js";
import { remember, run, termsOf } from "./run.js";

interface SdeOptions {
  /** Share of the noise that is renewed; 0 makes the method deterministic. */
  eta: number;
  s_noise: number;
}

interface MidpointOptions extends SdeOptions {
  solver_type: "midpoint" | "heun";
}

/**
 * Corrections of the first-order step: coefficients of the newest estimates, the newest first, in units of the signal
 * at the next noise level. steps: lengths in half the logarithm of the signal-to-noise ratio, this one first.
 */
type Corrections = (steps: readonly number[], eta: number) => readonly number[];

/** DPM-Solver++ for the reverse SDE (arXiv 2211.01095), as extended in k-diffusion. */
function integrate(x: Tensor, context: SolverContext, options: SdeOptions, order: number, correct: Corrections) {
  const { eta, s_noise } = options;
  const sigmas = withSignal(context.sampling, context.sigmas);
  const steps: number[] = [];
  return run(x, context, {
    sigmas,
    order,
    advance: ({ sigma, next, x, estimates }) => {
      const lambda = halfLogSnr(context.sampling, next);
      const h = lambda - halfLogSnr(context.sampling, sigma);
      remember(steps, h, order);
      const signal = next * exp(lambda);
      const [first = 0, ...older] = correct(steps, eta).map((coefficient) => signal * coefficient);
      const terms: Term[] = [
        [(next / sigma) * exp(-h * eta), x],
        ...termsOf([first - signal * expm1(-h * (eta + 1)), ...older], estimates),
      ];
      if (eta > 0 && s_noise > 0) {
        terms.push([next * Math.sqrt(-expm1(-2 * h * eta)) * s_noise, context.noise(sigma, next)]);
      }
      return terms;
    },
  });
}

const correct2m =
  (solver: "midpoint" | "heun"): Corrections =>
  ([h, before], eta) => {
    if (before === undefined) return [];
    const length = h! * (eta + 1);
    const slope = solver === "heun" ? expm1(-length) / length + 1 : -expm1(-length) / 2;
    const scaled = (slope * h!) / before;
    return [scaled, -scaled];
  };

const correct3m: Corrections = ([h, h1, h2], eta) => {
  if (h1 === undefined) return [];
  const length = h! * (eta + 1);
  const phi2 = expm1(-length) / length + 1;
  const r0 = h1 / h!;
  if (h2 === undefined) return [phi2 / r0, -phi2 / r0];
  const phi3 = phi2 / length - 0.5;
  const r1 = h2 / h!;
  // both derivatives are combinations of the slopes (D - D1) / r0 and (D1 - D2) / r1
  const older = (phi3 - phi2 * r0) / (r0 + r1);
  const newer = phi2 - older;
  return [newer / r0, older / r1 - newer / r0, -older / r1];
};

const dpmpp2mSdeSolver = (name: string, solver_type: "midpoint" | "heun"): Solver<MidpointOptions> => ({
  noise: "brownian",
  options: { eta: 1, s_noise: 1, solver_type },
  async sample(x, context, options) {
    requireOneOf(`${name}, solver_type`, options.solver_type, ["midpoint", "heun"]);
    return integrate(x, context, options, 2, correct2m(options.solver_type));
  },
});

export const dpmpp2mSde = dpmpp2mSdeSolver("dpmpp_2m_sde", "midpoint");
export const dpmpp2mSdeHeun = dpmpp2mSdeSolver("dpmpp_2m_sde_heun", "heun");

export const dpmpp3mSde: Solver<SdeOptions> = {
  noise: "brownian",
  options: { eta: 1, s_noise: 1 },
  sample: async (x, context, options) => integrate(x, context, options, 3, correct3m),
};
