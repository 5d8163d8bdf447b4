import { weightedSum } from "../../../tensor/ops.js";
import { isFlow } from "../../../tensor/sampling/noise-level.js";
import type { Sampler } from "../../../tensor/sampling/sigmas.js";
import type { Solver } from "../solver.js";

/** Euler's method. */
const euler: Solver = {
  noise: "global",
  options: {},
  async sample(x, context) {
    const { sigmas } = context;
    for (let i = 0; i + 1 < sigmas.length; i++) {
      const [sigma, next] = [sigmas[i]!, sigmas[i + 1]!];
      const denoised = await context.denoise(x, sigma);
      context.report(i, denoised);
      x = weightedSum([
        [next / sigma, x],
        [1 - next / sigma, denoised],
      ]);
    }
    return x;
  },
};

/** Euler's method with noise anew in each step. */
const eulerAncestral: Solver = {
  noise: "stream",
  options: {},
  async sample(x, context) {
    const { sigmas } = context;
    for (let i = 0; i + 1 < sigmas.length; i++) {
      const [sigma, next] = [sigmas[i]!, sigmas[i + 1]!];
      const denoised = await context.denoise(x, sigma);
      context.report(i, denoised);
      if (next === 0) x = denoised;
      else if (isFlow(context.sampling)) {
        const down = next * (1 + (next / sigma - 1));
        const renoise = Math.sqrt(next ** 2 - (down * ((1 - next) / (1 - down))) ** 2);
        const alpha = (1 - next) / (1 - down);
        x = weightedSum([
          [(alpha * down) / sigma, x],
          [alpha * (1 - down / sigma), denoised],
          [renoise, context.noise(sigma, next)],
        ]);
      } else {
        const up = Math.min(next, Math.sqrt((next ** 2 * (sigma ** 2 - next ** 2)) / sigma ** 2));
        const down = Math.sqrt(next ** 2 - up ** 2);
        x = weightedSum([
          [down / sigma, x],
          [1 - down / sigma, denoised],
          [up, context.noise(sigma, next)],
        ]);
      }
    }
    return x;
  },
};

/** The solver of each sampler's name. */
export const SOLVERS: Partial<Record<Sampler, Solver>> = { euler, euler_ancestral: eulerAncestral, ddim: euler };
