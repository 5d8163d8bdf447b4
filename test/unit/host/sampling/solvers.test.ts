import assert from "node:assert/strict";
import { modelSampling, SAMPLERS, type Sampler, Tensor } from "latentkit";
import { Estimate, type SolverContext } from "#src/host/sampling/solver.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { freshMemory } from "../../../helpers/sampling/fresh-memory.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

const X = Tensor.from([1, -2, 3, 0.5], [1, 1, 2, 2]);
const DENOISED = Tensor.from([0.25, 0.5, -0.25, 1], [1, 1, 2, 2]);
const UNCOND = Tensor.from([0.5, -0.5, 0.125, 2], [1, 1, 2, 2]);

function contextOf(model: "sd15" | "sd3", sigmas: readonly number[]): SolverContext {
  return {
    sampling: modelSampling(model),
    sigmas: Float32Array.from(sigmas),
    denoise: async () => DENOISED,
    estimate: async () => ({ denoised: new Estimate([[1, DENOISED]]) }),
    denoiseBoth: async () => ({ denoised: DENOISED, uncond: UNCOND }),
    noise: () => Tensor.full(X.shape, 0.5),
    ...freshMemory,
    report: () => {},
  };
}

function sample(sampler: Sampler, context: SolverContext, options?: object): Promise<Tensor> {
  const solver = SOLVERS[sampler];
  return solver.sample(X, context, { ...solver.options, ...options });
}

describe("solvers", () => {
  for (const sampler of SAMPLERS) {
    it(`${sampler} changes neither latents nor noise levels it receives`, async () => {
      for (const model of ["sd15", "sd3"] as const) {
        const context = contextOf(model, [1, 0.7, 0.5, 0.3, 0.2, 0]);
        const before = [X, DENOISED, UNCOND, Tensor.from(context.sigmas, [6])].map((one) => one.data.slice());
        const result = await sample(sampler, context);
        const after = [X, DENOISED, UNCOND, Tensor.from(context.sigmas, [6])].map((one) => one.data);
        assert.deepEqual(after, before);
        assert.ok(result.data.every(Number.isFinite), `${model}: ${result.data}`);
      }
    });

    it(`${sampler} returns the latent if there is no step`, async () => {
      assertSameBits(await sample(sampler, contextOf("sd15", [7])), X);
      assertSameBits(await sample(sampler, contextOf("sd15", [])), X);
    });
  }

  it("lms of an order above the terms of one sum uses all derivatives", async () => {
    const sigmas = Array.from({ length: 12 }, (_, i) => 12 - i);
    // d = 3 everywhere: every set of weights adds up to the length of its step
    const context = { ...contextOf("sd15", sigmas), denoise: async (x: Tensor, sigma: number) => minus(x, 3 * sigma) };
    const { data } = await sample("lms", context, { order: 10 });
    for (const [i, value] of data.entries()) assert.ok(Math.abs(value - (X.data[i]! - 33)) < 1e-3, `${value}`);
  });

  for (const [model, from, to] of [
    ["sd15", 4, 1],
    ["sd3", 0.75, 0.5],
  ] as const) {
    it(`cfgpp_ud10_ab of ${model} renoises with the negative side's noise`, async () => {
      const signal = (sigma: number) => (model === "sd3" ? 1 - sigma : 1);
      const result = await sample("cfgpp_ud10_ab", contextOf(model, [from, to]));
      for (const [i, value] of result.data.entries()) {
        const noise = (X.data[i]! - signal(from) * UNCOND.data[i]!) / from;
        const expected = signal(to) * DENOISED.data[i]! + to * noise;
        assert.ok(Math.abs(value - expected) < 1e-6, `${value}, expected ${expected}`);
      }
    });
  }

  it("uni_pc ends at 0.001 instead of 0, else at the last sigma", () => {
    const { lastSigma } = SOLVERS.uni_pc;
    assert.equal(lastSigma!(Float32Array.of(1, 0)), Math.fround(0.001));
    assert.equal(lastSigma!(Float32Array.of(1, 0.5)), 0.5);
  });

  const refused: readonly [Sampler, object, string, string][] = [
    ["lms", { order: 0 }, "value.out-of-range", "lms, order: expected a whole number from 1 to 100, received 0."],
    ["lms", { order: 101 }, "value.out-of-range", "lms, order: expected a whole number from 1 to 100, received 101."],
    [
      "ipndm",
      { max_order: 1 },
      "value.out-of-range",
      "ipndm, max_order: expected a whole number from 2 to 4, received 1.",
    ],
    [
      "ipndm_v",
      { max_order: 5 },
      "value.out-of-range",
      "ipndm_v, max_order: expected a whole number from 2 to 4, received 5.",
    ],
    [
      "deis",
      { max_order: 2.5 },
      "value.out-of-range",
      "deis, max_order: expected a whole number from 2 to 4, received 2.5.",
    ],
    ["deis", { deis_mode: "ab" }, "value.invalid", 'deis, deis_mode: expected one of tab, rhoab, received "ab".'],
    [
      "deis",
      { deis_mode: "rhoab" },
      "value.out-of-range",
      "deis, max_order: expected 4 with deis_mode rhoab, received 3.",
    ],
    [
      "er_sde",
      { max_stage: 4 },
      "value.out-of-range",
      "er_sde, max_stage: expected a whole number from 1 to 3, received 4.",
    ],
    [
      "dpmpp_2m_sde_heun",
      { solver_type: "bogus" },
      "value.invalid",
      'dpmpp_2m_sde_heun, solver_type: expected one of midpoint, heun, received "bogus".',
    ],
    [
      "sa_solver",
      { predictor_order: 7 },
      "value.out-of-range",
      "sa_solver, predictor_order: expected a whole number from 1 to 6, received 7.",
    ],
    [
      "sa_solver_pece",
      { corrector_order: -1 },
      "value.out-of-range",
      "sa_solver_pece, corrector_order: expected a whole number from 0 to 6, received -1.",
    ],
  ];
  for (const sampler of ["res_multistep_ancestral", "res_multistep_ancestral_cfg_pp", "euler_ancestral"] as const) {
    it(`${sampler} is finite if sigmas rise`, async () => {
      const { data } = await sample(sampler, contextOf("sd15", [0.5, 1, 2, 5, 10]));
      assert.ok(data.every(Number.isFinite));
    });
  }

  for (const [sampler, options, code, message] of refused) {
    it(`${sampler} refuses ${JSON.stringify(options)}`, async () => {
      const context = contextOf("sd15", [5, 4, 3, 2, 1]);
      await assert.rejects(sample(sampler, context, options), { name: "LatentkitError", code, message });
    });
  }
});

function minus(x: Tensor, value: number): Tensor {
  return Tensor.from(
    x.data.map((one) => one - value),
    x.shape,
  );
}
