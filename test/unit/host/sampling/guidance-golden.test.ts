import assert from "node:assert/strict";
import { type Conditioning, modelSampling, type Sampler, Tensor } from "latentkit";
import { readSides } from "#src/host/sampling/conditioning.js";
import { DenoisingRun } from "#src/host/sampling/denoising-run.js";
import { guidanceOf } from "#src/host/sampling/guiders.js";
import { denoiseMask, intoModel, noisedTerms, outOfModel } from "#src/host/sampling/latent-space.js";
import { reseededNoise } from "#src/host/sampling/noise.js";
import { SOLVERS } from "#src/host/sampling/solvers/index.js";
import { analyticEntry, analyticModel } from "../../../helpers/sampling/analytic-model.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";
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
  seed: string;
  noise: string;
  noise_index: number;
  latent: string | null;
  noise_mask?: string;
  mask_resized?: string;
  inpaint_noise?: string;
  sigmas: string;
  x0: string;
  noise_draws?: { stream?: string; first?: number; count: number };
  model_calls: number;
  call_sigmas: number[];
  cond_or_uncond?: string[];
  out: string;
  scale: number;
  spread_f32: number | null;
  spread_coef64: number | null;
}

const { cases, tensor, raw } = golden<Case>("samplers");
/** The golden set has latents in the model's units. */
const latentFormat = { name: "identity", scaleFactor: 1, shiftFactor: 0, channels: 4 };
const SAMPLINGS = {
  sd15_eps: { ...modelSampling("sd15"), latentFormat },
  sd3_flow: { ...modelSampling("sd3"), latentFormat },
};

describe("guidance and masks, golden samplers", () => {
  for (const one of cases) {
    if (one.group !== "cfg" && one.group !== "mask") continue;
    it(one.id, () => check(one));
  }
});

async function check(one: Case): Promise<void> {
  const sampling = SAMPLINGS[one.model_sampling];
  const { model, calls } = analyticModel(sampling, one.denoiser);
  const positive: Conditioning = [analyticEntry(one.cond)];
  const negative: Conditioning = [analyticEntry(one.uncond)];
  const solver = SOLVERS[one.sampler]!;
  const initial = row(tensor(one.noise), one.noise_index);
  const { shape } = initial;
  const latent = intoModel(one.latent === null ? Tensor.zeros(shape) : tensor(one.latent), sampling);
  const reseeded = one.sampler === "ddim" ? reseededNoise(BigInt(one.seed), shape).noise : undefined;
  if (one.inpaint_noise !== undefined) assertSameBits(reseeded, tensor(one.inpaint_noise), "inpaint_noise");
  const mask = one.noise_mask === undefined ? undefined : denoiseMask(tensor(one.noise_mask), shape);
  let draws = 0;
  const method = guidanceOf({ kind: "cfg", model, positive, negative, cfg: one.cfg });
  const run = new DenoisingRun({
    model,
    method,
    sides: readSides(method.sides, sampling, [shape[2]!, shape[3]!], method.areaOrder),
    sigmas: raw(one.sigmas).data as Float32Array,
    shape,
    inpaint: mask && { mask, latent, noise: reseeded ?? initial },
    noise: () => row(tensor(one.noise_draws!.stream!), (one.noise_draws!.first ?? 0) + draws++),
  });
  const x0 = run.start(noisedTerms(sampling, run.sigmas[0]!, initial, latent, true));
  const most = Math.max(...tensor(one.x0).data.map(Math.abs));
  assertClose(x0, tensor(one.x0), () => 2e-6 * most, "x0");
  const last = solver.lastSigma?.(run.sigmas) ?? run.sigmas.at(-1)!;
  const out = outOfModel(await solver.sample(tensor(one.x0), run, solver.options), sampling, last);
  assert.equal(calls.length, one.model_calls, "model calls");
  const near = one.sampler === "dpm_adaptive" ? 1e-3 : 2e-5;
  for (const [i, { sigma }] of calls.entries()) {
    const expected = one.call_sigmas[i]!;
    assert.ok(Math.abs(sigma - expected) <= near * expected, `sigma of call ${i}: ${sigma}, expected ${expected}`);
  }
  const sides = calls.map(({ cond }) => JSON.stringify(cond.map((entry) => Number(negative.includes(entry)))));
  const expected = new Set((one.cond_or_uncond ?? ["[1, 0]"]).map((list) => list.replaceAll(" ", "")));
  assert.deepEqual(new Set(sides), expected);
  const spread = Math.max(one.spread_f32 ?? 0, one.spread_coef64 ?? 0);
  assertClose(out, tensor(one.out), () => 5e-6 * Math.max(1, one.scale) + 4 * spread, "out");
}

function row(stream: Tensor, index: number): Tensor {
  const shape = stream.shape.slice(1);
  const size = shape.reduce((product, side) => product * side, 1);
  return Tensor.from(stream.data.slice(index * size, (index + 1) * size), shape);
}
