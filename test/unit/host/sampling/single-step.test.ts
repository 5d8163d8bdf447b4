import assert from "node:assert/strict";
import { modelSampling, SAMPLERS, type Sampler, Tensor } from "latentkit";
import { Estimate, type SolverContext } from "#src/host/sampling/solver.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { withDevice } from "#src/tensor/device/device.js";
import { refuses } from "../../../helpers/errors.js";
import { freshMemory } from "../../../helpers/sampling/fresh-memory.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

const SD15 = modelSampling("sd15");
const SHAPE = [1, 4, 2, 2];

interface Trace {
  calls: number[];
  draws: [number, number][];
  reports: number[];
}

function contextOf(sigmas: number[], changes: Partial<SolverContext> = {}): SolverContext & Trace {
  const trace: Trace = { calls: [], draws: [], reports: [] };
  const denoise = async (x: Tensor, sigma: number) => {
    trace.calls.push(sigma);
    return Tensor.from(
      x.data.map((value) => value / (1 + sigma * sigma)),
      x.shape,
    );
  };
  return {
    ...trace,
    sampling: SD15,
    sigmas: Float32Array.from(sigmas),
    denoise,
    estimate: async (x, sigma) => ({ denoised: new Estimate([[1, await (changes.denoise ?? denoise)(x, sigma)]]) }),
    denoiseBoth: async (x, sigma) => {
      const denoised = await denoise(x, sigma);
      return { denoised, uncond: denoised };
    },
    noise: (sigma, next) => {
      trace.draws.push([sigma, next]);
      return Tensor.full(SHAPE, 0.5);
    },
    ...freshMemory,
    report: (step) => trace.reports.push(step),
    ...changes,
  };
}

const run = (sampler: Sampler, context: SolverContext, options: object = {}, x = Tensor.full(SHAPE, 3)) => {
  const solver = SOLVERS[sampler]!;
  return solver.sample(x, context, { ...solver.options, ...options });
};

describe("solvers, steps", () => {
  for (const sampler of SAMPLERS.filter((name) => SOLVERS[name] !== undefined)) {
    it(`${sampler}: one sigma returns x without a model call`, async () => {
      const x = Tensor.full(SHAPE, 3);
      const context = contextOf([5]);
      assertSameBits(await run(sampler, context, {}, x), x);
      assert.deepEqual([context.calls, context.draws, context.reports], [[], [], []]);
    });

    it(`${sampler}: x and sigmas stay as they were`, async () => {
      const x = Tensor.full(SHAPE, 3);
      const context = contextOf([5, 2, 1, 0]);
      await run(sampler, context, {}, x);
      assertSameBits(x, Tensor.full(SHAPE, 3));
      assert.deepEqual([...context.sigmas], [5, 2, 1, 0]);
      assert.deepEqual(
        context.reports,
        context.reports.map((_, i) => i),
      );
    });
  }

  for (const steps of [1, 2, 3, 4, 5, 6, 7, 9]) {
    it(`dpm_fast of ${steps} steps: as many model calls`, async () => {
      const context = contextOf(Array.from({ length: steps + 1 }, (_, i) => steps - i));
      await run("dpm_fast", context);
      assert.equal(context.calls.length, steps);
    });
  }

  it("exp_heun_2_x0_sde draws twice a step, as seeds_2 does, the second without weight", async () => {
    const context = contextOf([5, 2, 0]);
    await run("exp_heun_2_x0_sde", context);
    assert.deepEqual(
      context.draws.map((draw) => draw.map((sigma) => Math.fround(sigma))),
      [
        [5, 2],
        [2, 2],
      ],
    );
  });

  it("a flow's sigma of 1 is replaced also for the model call of exp_heun_2_x0", async () => {
    const context = contextOf([1, 0.5, 0], { sampling: modelSampling("sd3") });
    await run("exp_heun_2_x0", context);
    assert.equal(context.calls[0], Math.fround(2.9997 / 2.9998));
  });
});

describe("solvers, options out of range", () => {
  const REFUSED: [sampler: Sampler, options: object, message: RegExp][] = [
    ["dpm_adaptive", { order: 4 }, /dpm_adaptive, order: expected 2 or 3, received 4\./],
    ["dpm_adaptive", { order: "3" }, /expected 2 or 3, received "3"\./],
    ["dpm_adaptive", { h_init: 0 }, /dpm_adaptive, h_init: expected a number above 0, received 0/],
    ["dpm_adaptive", { rtol: 0, atol: 0 }, /dpm_adaptive: no progress at sigma/],
    ["dpm_adaptive", { accept_safety: 3 }, /dpm_adaptive: no progress at sigma/],
    ["dpmpp_sde", { r: 0 }, /dpmpp_sde, r: expected a number above 0, received 0\./],
    ["seeds_2", { r: -1 }, /seeds_2, r: expected a number above 0, received -1\./],
    ["seeds_3", { r_1: 0 }, /seeds_3, r_1: expected a number above 0/],
    ["seeds_3", { r_2: Number.NaN }, /seeds_3, r_2: expected a number above 0, received NaN\./],
  ];
  for (const [sampler, options, message] of REFUSED) {
    it(`${sampler} with ${JSON.stringify(options)}: refused`, async () => {
      await refuses(run(sampler, contextOf([5, 2, 1, 0]), options), "value.out-of-range", message);
    });
  }

  it("dpm_adaptive with steps that stay tiny: refused after 10,000", () =>
    // a fake GPU takes minutes for them
    withDevice("cpu", () =>
      refuses(
        run("dpm_adaptive", contextOf([5, 2, 1, 0]), { h_init: 1e-5, icoeff: 0 }),
        "value.out-of-range",
        /dpm_adaptive: stopped after 10000 steps at sigma \d/,
      ),
    ));

  it("dpm_adaptive of a model that returns NaN: refused after one step", async () => {
    let calls = 0;
    const denoise = async () => {
      calls++;
      return Tensor.full(SHAPE, Number.NaN);
    };
    await refuses(
      run("dpm_adaptive", contextOf([5, 1, 0], { denoise })),
      "value.out-of-range",
      /no progress at sigma 5 \(error NaN\)/,
    );
    assert.equal(calls, 3);
  });

  for (const sampler of ["dpm_fast", "dpm_adaptive"] as const) {
    it(`${sampler} with eta, sigmas that rise: refused; without eta they are solved`, async () => {
      await refuses(
        run(sampler, contextOf([1, 2, 5]), { eta: 0.5 }),
        "value.out-of-range",
        /eta must be 0 if sigmas do not fall/,
      );
      const [value] = (
        await run(sampler, contextOf(Array.from({ length: 21 }, (_, i) => 1 + i / 5)), { rtol: 0.001, atol: 0.001 })
      ).data;
      // the path of N(0, 1): x grows with its deviation
      assert.ok(Math.abs(value! - 3 * Math.sqrt(26 / 2)) < 0.2, `${value}`);
    });
  }

  const flow = { sampling: modelSampling("sd3") };
  for (const sampler of ["dpm_2_ancestral", "dpmpp_2s_ancestral"] as const) {
    it(`${sampler} of a flow, eta that goes below level 0: refused`, async () => {
      await refuses(
        run(sampler, contextOf([0.9, 0.2, 0], flow), { eta: 1.5 }),
        "value.out-of-range",
        /eta: expected a smaller value, received 1\.5: the step from sigma 0\.8999\d+ would end below 0/,
      );
    });
  }

  it("euler_ancestral of a flow, sigmas that rise: refused", async () => {
    await refuses(
      run("euler_ancestral", contextOf([0.5, 0.8], flow)),
      "value.out-of-range",
      /expected falling sigmas, and an eta that leaves no negative variance/,
    );
  });
});
