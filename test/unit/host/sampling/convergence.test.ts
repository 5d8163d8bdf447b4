import assert from "node:assert/strict";
import { modelSampling, SAMPLERS, type Sampler, Tensor } from "latentkit";
import { Estimate } from "#src/host/sampling/solver.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { analyticDenoised } from "../../../helpers/sampling/analytic.js";
import { freshMemory } from "../../../helpers/sampling/fresh-memory.js";

const SAMPLINGS = { eps: modelSampling("sd15"), flow: modelSampling("sd3") };
type Kind = keyof typeof SAMPLINGS;

/** Mean and variance of the golden Gaussian, whose path is known (golden/README.md, exact_ode_gauss). */
const [MEAN, VARIANCE] = [0.3125, 0.25];
const SIGMAS: Record<Kind, readonly [number, number]> = { eps: [5, 0.2], flow: [0.9, 0.1] };
const STARTS = [-8, -3, -1, 0.2, 1, 3, 8];

interface Run {
  options?: Record<string, number>;
  noise?: (draw: number) => Tensor;
}

const signal = (kind: Kind, sigma: number) => (kind === "flow" ? 1 - sigma : 1);
const variance = (kind: Kind, sigma: number) => signal(kind, sigma) ** 2 * VARIANCE + sigma ** 2;

/** Noise levels at equal distances of half-log-SNR. */
function levels(kind: Kind, steps: number): Float32Array {
  const [high, low] = SIGMAS[kind].map((sigma) => Math.log(sigma / signal(kind, sigma))) as [number, number];
  return Float32Array.from({ length: steps + 1 }, (_, i) => {
    const sigma = Math.exp(high + ((low - high) * i) / steps);
    return kind === "flow" ? sigma / (1 + sigma) : sigma;
  });
}

async function sample(sampler: Sampler, kind: Kind, sigmas: Float32Array, start: number[], run: Run = {}) {
  const solver = SOLVERS[sampler]!;
  const denoise = async (x: Tensor, sigma: number) =>
    analyticDenoised(x, sigma, { isFlow: kind === "flow", kind: "gauss", c: 0 });
  let draws = 0;
  const x = Tensor.from(start, [1, 1, 1, start.length]);
  const context = {
    sampling: SAMPLINGS[kind],
    sigmas,
    denoise,
    estimate: async (x: Tensor, sigma: number) => ({ denoised: new Estimate([[1, await denoise(x, sigma)]]) }),
    denoiseBoth: async (x: Tensor, sigma: number) => {
      const denoised = await denoise(x, sigma);
      return { denoised, uncond: denoised };
    },
    noise: () => run.noise?.(draws++) ?? Tensor.zeros(x.shape),
    ...freshMemory,
    report: () => {},
  };
  return [...(await solver.sample(x, context, { ...solver.options, ...run.options })).data];
}

/** Largest difference to the exact solution of the probability flow. */
async function errorOf(sampler: Sampler, kind: Kind, steps: number, run: Run): Promise<number> {
  const sigmas = levels(kind, steps);
  const [from, to] = [sigmas[0]!, sigmas[steps]!];
  const ratio = Math.sqrt(variance(kind, to) / variance(kind, from));
  const exact = STARTS.map((x) => signal(kind, to) * MEAN + (x - signal(kind, from) * MEAN) * ratio);
  return worst(await sample(sampler, kind, sigmas, STARTS, run), exact);
}

/** Samplers of several steps (multistep-convergence.test.ts), of other names, and those that draw noise at any options. */
const WITHOUT_ORDER = `
  euler_ancestral euler_ancestral_cfg_pp heunpp2 dpm_2_ancestral lms dpm_adaptive dpmpp_2s_ancestral_cfg_pp
  dpmpp_sde_gpu dpmpp_2m dpmpp_2m_cfg_pp dpmpp_2m_sde dpmpp_2m_sde_gpu dpmpp_2m_sde_heun dpmpp_2m_sde_heun_gpu
  dpmpp_3m_sde dpmpp_3m_sde_gpu ddpm lcm ipndm ipndm_v deis cfgpp_ud10_ab res_multistep res_multistep_cfg_pp
  res_multistep_ancestral res_multistep_ancestral_cfg_pp gradient_estimation gradient_estimation_cfg_pp er_sde
  sa_solver sa_solver_pece ddim uni_pc uni_pc_bh2
`;

const worst = (values: number[], exact: number[]) => Math.max(...values.map((value, i) => Math.abs(value - exact[i]!)));

describe("solvers, convergence to the exact path of a Gaussian", () => {
  const ORDERS: [sampler: Sampler, order: number, steps: [number, number], run?: Run][] = [
    ["euler", 1, [16, 32]],
    ["euler_cfg_pp", 1, [16, 32]],
    ["heun", 2, [16, 32]],
    ["dpm_2", 2, [16, 32]],
    ["dpmpp_2s_ancestral", 2, [16, 32], { options: { eta: 0 } }],
    ["dpmpp_sde", 2, [16, 32], { options: { eta: 0 } }],
    ["seeds_2", 2, [16, 32], { options: { eta: 0 } }],
    ["exp_heun_2_x0", 2, [16, 32]],
    ["exp_heun_2_x0_sde", 2, [16, 32], { options: { eta: 0 } }],
    ["seeds_3", 3, [12, 24], { options: { eta: 0 } }],
    // calls: 5 steps of order 3 and one of order 2, and twice as many steps
    ["dpm_fast", 3, [17, 35]],
  ];
  it("are tried for every sampler that has an order", () => {
    const known = [...ORDERS.map(([sampler]) => sampler), ...WITHOUT_ORDER.trim().split(/\s+/)];
    assert.deepEqual(known.toSorted(), SAMPLERS.toSorted());
  });

  for (const [sampler, order, [few, many], run = {}] of ORDERS) {
    for (const kind of ["eps", "flow"] as const) {
      it(`${sampler}, ${kind}: order ${order}`, async () => {
        const [coarse, fine] = [await errorOf(sampler, kind, few, run), await errorOf(sampler, kind, many, run)];
        const measured = Math.log2(coarse / fine);
        assert.ok(Math.abs(measured - order) < 0.3, `order ${measured}: errors ${coarse} and ${fine}`);
      });
    }
  }
});

describe("solvers of the reverse process, exact Gaussian", () => {
  for (const sampler of ["seeds_2", "seeds_3", "exp_heun_2_x0_sde"] as const) {
    it(`${sampler}: the mean is exact in any number of steps`, async () => {
      const sigmas = levels("eps", 3);
      const ratio = variance("eps", sigmas[3]!) / variance("eps", sigmas[0]!);
      const exact = STARTS.map((x) => MEAN + (x - MEAN) * ratio);
      assert.ok(worst(await sample(sampler, "eps", sigmas, STARTS), exact) < 1e-6);
    });

    it(`${sampler}: the variance converges, twice as near with twice the steps or more`, async () => {
      const [coarse, fine] = [await varianceError(sampler, 12), await varianceError(sampler, 24)];
      assert.ok(coarse / fine > 1.8, `errors ${coarse} and ${fine}`);
      assert.ok(fine < 0.01, `error ${fine}`);
    });
  }

  /** Relative error of the variance of the end: each draw is 1 in its own value, where it shows its weight. */
  async function varianceError(sampler: Sampler, steps: number): Promise<number> {
    const sigmas = levels("eps", steps);
    const lanes = 3 * steps;
    const noise = (draw: number) => {
      const values = new Float32Array(lanes);
      values[draw] = 1;
      return Tensor.from(values, [1, 1, 1, lanes]);
    };
    const ends = await sample(sampler, "eps", sigmas, new Array(lanes).fill(MEAN), { noise });
    const sum = ends.reduce((total, value) => total + (value - MEAN) ** 2, 0);
    const [start, end] = [variance("eps", sigmas[0]!), variance("eps", sigmas[steps]!)];
    return Math.abs(sum / (end * (1 - end / start)) - 1);
  }
});
