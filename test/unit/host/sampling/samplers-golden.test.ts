import assert from "node:assert/strict";
import { modelSampling, SAMPLERS, type Sampler, Tensor } from "latentkit";
import { Estimate, type SolverContext } from "#src/host/sampling/solver.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { isFlow } from "#src/tensor/sampling/noise-level.js";
import { analyticDenoised } from "../../../helpers/sampling/analytic.js";
import { freshMemory } from "../../../helpers/sampling/fresh-memory.js";
import { golden } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  group: string;
  sampler: Sampler;
  cfg: number;
  cond: number;
  uncond: number;
  model_sampling: "sd15_eps" | "sd3_flow";
  denoiser: "gauss" | "mix";
  noise: string;
  noise_index: number;
  sigmas: string;
  x0: string;
  latent: string | null;
  noise_mask?: string;
  mask_resized?: string;
  inpaint_noise?: string;
  extra_options?: Record<string, unknown>;
  noise_draws?: { stream?: string; first?: number; count: number; args?: [number, number][] };
  model_calls: number;
  call_sigmas: number[];
  out?: string;
  scale: number;
  spread_f32: number | null;
  spread_coef64: number | null;
  error?: string;
}

const { cases, tensor, raw } = golden<Case>("samplers");
const SAMPLINGS = { sd15_eps: modelSampling("sd15"), sd3_flow: modelSampling("sd3") };
/** Python functions that the golden files name by their text. */
const FUNCTIONS: Record<string, (x: number) => number> = {
  "lambda x: x**2": (x) => x ** 2,
  "lambda sigma: 0.0": () => 0,
  "lambda sigma: 0.5 always": () => 0.5,
};

describe("samplers, golden", () => {
  for (const sampler of SAMPLERS) {
    // masks and guidance belong to the sampling around a solver
    const own = cases.filter((one) => one.sampler === sampler && one.group !== "mask");
    // the newest names have no golden cases
    if (SOLVERS[sampler] === undefined || own.length === 0) continue;
    it(`${sampler}: ${own.length} cases`, async () => {
      for (const one of own) await check(one);
    });
  }
});

async function check(one: Case): Promise<void> {
  const solver = SOLVERS[one.sampler]!;
  const sampling = SAMPLINGS[one.model_sampling];
  const flow = isFlow(sampling);
  const sigmas = raw(one.sigmas).data as Float32Array;
  const calls: number[] = [];
  const draws: [number, number][] = [];
  const estimate = (x: Tensor, sigma: number, c: number) =>
    analyticDenoised(x, sigma, { isFlow: flow, kind: one.denoiser, c });
  const denoiseBoth = async (x: Tensor, sigma: number) => {
    calls.push(sigma);
    const cond = estimate(x, sigma, one.cond);
    const uncond = estimate(x, sigma, one.uncond);
    const denoised = Tensor.from(
      cond.data.map((value, i) => Math.fround(uncond.data[i]! + Math.fround(value - uncond.data[i]!) * one.cfg)),
      x.shape,
    );
    return { denoised: one.cfg === 1 ? cond : denoised, cond, uncond };
  };
  const context: SolverContext = {
    sampling,
    sigmas,
    denoise: async (x, sigma) => (await denoiseBoth(x, sigma)).denoised,
    estimate: async (x, sigma) => {
      const { cond, uncond } = await denoiseBoth(x, sigma);
      return {
        denoised: new Estimate(
          one.cfg === 1
            ? [[1, cond]]
            : [
                [one.cfg, cond],
                [1 - one.cfg, uncond],
              ],
        ),
      };
    },
    denoiseBoth,
    noise: (sigma, next) => {
      const { stream, first = 0 } = one.noise_draws!;
      draws.push([sigma, next]);
      return row(tensor(stream!), first + draws.length - 1);
    },
    ...freshMemory,
    report: () => {},
  };
  const options: Record<string, unknown> = { ...(solver.options as object) };
  for (const [key, value] of Object.entries(one.extra_options ?? {})) {
    options[key] = FUNCTIONS[value as string] ?? value;
  }
  const run = () => solver.sample(tensor(one.x0), context, options as never);
  if (one.error !== undefined) {
    await assert.rejects(async () => run(), { name: "LatentkitError" }, one.id);
    return;
  }
  const result = await run();
  assert.equal(calls.length, one.model_calls, `${one.id}: calls`);
  const near = one.sampler === "dpm_adaptive" ? 1e-3 : 2e-5;
  for (const [i, sigma] of one.call_sigmas.entries())
    assertNear(calls[i]!, sigma, near * sigma, `${one.id}: sigma of call ${i}`);
  if (one.noise_draws !== undefined) {
    assert.equal(draws.length, one.noise_draws.count, `${one.id}: draws`);
    one.noise_draws.args?.forEach(([sigma, next], i) => {
      assertNear(draws[i]![0], sigma, near * sigma, `${one.id}: from of draw ${i}`);
      assertNear(draws[i]![1], next, near * sigma, `${one.id}: to of draw ${i}`);
    });
  }
  const last = solver.lastSigma?.(sigmas) ?? sigmas.at(-1)!;
  const expected = tensor(one.out!);
  const tolerance = 5e-6 * Math.max(1, one.scale) + 4 * Math.max(one.spread_f32 ?? 0, one.spread_coef64 ?? 0);
  result.data.forEach((value, i) => {
    const out = flow ? Math.fround(value / Math.fround(1 - last)) : value;
    assertNear(out, expected.data[i]!, tolerance, `${one.id}: value ${i}`);
  });
}

function row(stream: Tensor, index: number): Tensor {
  const shape = stream.shape.slice(1);
  const size = shape.reduce((product, side) => product * side, 1);
  return Tensor.from(stream.data.slice(index * size, (index + 1) * size), shape);
}

function assertNear(value: number, expected: number, tolerance: number, what: string): void {
  assert.ok(Math.abs(value - expected) <= tolerance, `${what}: ${value}, expected ${expected} within ${tolerance}`);
}
