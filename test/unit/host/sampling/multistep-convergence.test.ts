import assert from "node:assert/strict";
import { modelSampling, type Sampler, Tensor } from "latentkit";
import { Estimate, type SolverContext } from "#src/host/sampling/solver.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { isFlow } from "#src/tensor/sampling/noise-level.js";
import { freshMemory } from "../../../helpers/sampling/fresh-memory.js";

const MEAN = 0.3125;
const VARIANCE = 0.25;
const STARTS = [-8, -3, 0, 2, 7, 11];

/** Noise levels from 0.9 to 0.2 for a flow, else from 3 to 0.3. */
interface Way {
  readonly model: "sd15" | "sd3";
  readonly spacing: "log" | "linear";
  /** Numbers of steps between which the order is measured, a power of 4 apart. */
  readonly steps: readonly [few: number, many: number];
}

const FLOW: Way = { model: "sd3", spacing: "log", steps: [32, 128] };
const EVEN_FLOW: Way = { model: "sd3", spacing: "linear", steps: [32, 128] };
const EVEN: Way = { model: "sd15", spacing: "linear", steps: [16, 64] };
const still = { tau_func: () => 0 };

/** Each step but the first few is of the method's order; those at the start bound the whole where it is not a multiple. */
const ORDERS: readonly [sampler: Sampler, order: number, way: Way, options?: object][] = [
  ["dpmpp_2m", 2, FLOW],
  ["dpmpp_2m_cfg_pp", 2, FLOW],
  ["dpmpp_2m_sde", 2, FLOW, { eta: 0 }],
  ["dpmpp_2m_sde_heun", 2, FLOW, { eta: 0 }],
  ["dpmpp_3m_sde", 2, FLOW, { eta: 0 }],
  ["res_multistep", 2, EVEN_FLOW],
  ["res_multistep_cfg_pp", 2, EVEN_FLOW],
  ["ipndm", 2, FLOW],
  ["ipndm", 4, EVEN],
  ["ipndm_v", 2, FLOW, { max_order: 2 }],
  ["deis", 2, FLOW],
  ["deis", 3, EVEN],
  ["uni_pc", 2, FLOW],
  ["uni_pc_bh2", 2, FLOW],
  ["lms", 2, FLOW],
  ["lms", 4, EVEN],
  // of more steps the rest is float32's rounding
  ["sa_solver", 3, { ...FLOW, steps: [16, 64] }, still],
  ["sa_solver_pece", 3, { ...FLOW, steps: [16, 64] }, still],
  ["gradient_estimation", 1, FLOW],
  ["gradient_estimation", 2, FLOW, { ge_gamma: 1.5 }],
  ["cfgpp_ud10_ab", 2, FLOW],
];

describe("multistep solvers, order of convergence", () => {
  for (const [sampler, order, way, options] of ORDERS) {
    const text = `${sampler} ${options === undefined ? "" : `${Object.keys(options)} `}is of order ${order}`;
    it(`${text} on ${way.model}, ${way.spacing} sigmas`, async () => {
      const [few, many] = way.steps;
      const coarse = await largestError(sampler, way, few, options);
      const fine = await largestError(sampler, way, many, options);
      const measured = Math.log2(coarse / fine) / Math.log2(many / few);
      assert.ok(Math.abs(measured - order) < 0.3, `order ${measured.toFixed(2)}: errors ${coarse}, ${fine}`);
      assert.ok(fine < (order === 1 ? 0.05 : 2e-3), `error ${fine} after ${many} steps`);
    });
  }
});

/** Largest distance from the exact solution of the probability flow of one Gaussian. */
async function largestError(sampler: Sampler, way: Way, steps: number, options?: object): Promise<number> {
  const sampling = modelSampling(way.model);
  const flow = isFlow(sampling);
  const [from, to] = flow ? [0.9, 0.2] : [3, 0.3];
  const sigmas = Float32Array.from({ length: steps + 1 }, (_, i) =>
    way.spacing === "log" ? from * (to / from) ** (i / steps) : from + ((to - from) * i) / steps,
  );
  const signal = (sigma: number) => (flow ? 1 - sigma : 1);
  const variance = (sigma: number) => signal(sigma) ** 2 * VARIANCE + sigma ** 2;
  const denoise = (x: Tensor, sigma: number) =>
    Tensor.from(
      x.data.map((value) => (signal(sigma) * VARIANCE * value + sigma ** 2 * MEAN) / variance(sigma)),
      x.shape,
    );
  const context: SolverContext = {
    sampling,
    sigmas,
    denoise: async (x, sigma) => denoise(x, sigma),
    estimate: async (x, sigma) => ({ denoised: new Estimate([[1, denoise(x, sigma)]]) }),
    denoiseBoth: async (x, sigma) => {
      const denoised = denoise(x, sigma);
      return { denoised, uncond: denoised };
    },
    noise: () => Tensor.zeros([1, 1, 1, STARTS.length]),
    ...freshMemory,
    report: () => {},
  };
  const solver = SOLVERS[sampler]!;
  const x = Tensor.from(STARTS, [1, 1, 1, STARTS.length]);
  const { data } = await solver.sample(x, context, { ...solver.options, ...options });
  // SA-Solver ends a window one noise level early
  const end = sigmas.at(sampler.startsWith("sa_solver") ? -2 : -1)!;
  const stretch = Math.sqrt(variance(end) / variance(sigmas[0]!));
  const exact = STARTS.map((start) => signal(end) * MEAN + (start - signal(sigmas[0]!) * MEAN) * stretch);
  return Math.max(...exact.map((value, i) => Math.abs(value - data[i]!)));
}
