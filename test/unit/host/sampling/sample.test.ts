import assert from "node:assert/strict";
import { type Latent, modelSampling, randn, type Sampler, Tensor } from "latentkit";
import { derivedModel } from "#src/host/derived-model.js";
import type { SampledStep } from "#src/host/sampling/denoising-run.js";
import { solverNoise } from "#src/host/sampling/noise.js";
import { type SampleOptions, sample } from "#src/host/sampling/sample.js";
import type { SamplingRun } from "#src/host/types.js";
import { rejectsAs } from "../../../helpers/errors.js";
import { analyticEntry, analyticModel } from "../../../helpers/sampling/analytic-model.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

const options = (changes: Partial<SampleOptions> = {}, family: "sd15" | "sd3" = "sd15"): SampleOptions => ({
  guider: {
    kind: "cfg",
    model: analyticModel(modelSampling(family)).model,
    positive: [analyticEntry(0.5)],
    negative: [analyticEntry(-0.5)],
    cfg: 2,
  },
  sampler: { sampler: "euler", options: {} },
  sigmas: Float32Array.of(4, 2, 1, 0),
  noise: { seed: 5n, enabled: true },
  latent: { samples: Tensor.full([1, family === "sd3" ? 16 : 4, 4, 4], 0.5) },
  ...changes,
});

describe("sampling", () => {
  it("reports each step with the level at which it began, and leaves the sigmas as they are", async () => {
    const steps: SampledStep[] = [];
    const sigmas = Float32Array.of(4, 2, 1, 0);
    const { denoised } = await sample(options({ sigmas, onStep: (step) => steps.push(step) }));
    assert.deepEqual(
      steps.map(({ step, total, sigma }) => [step, total, sigma]),
      [
        [0, 3, 4],
        [1, 3, 2],
        [2, 3, 1],
      ],
    );
    const inUnits = Tensor.from(
      steps[2]!.denoised.data.map((value) => value / 0.18215),
      steps[2]!.denoised.shape,
    );
    assertClose(denoised.samples, inUnits, (x) => 1e-6 * Math.abs(x), "last estimate");
    assert.deepEqual([...sigmas], [4, 2, 1, 0]);
  });

  it("stops before the next call of the model when its signal aborts", async () => {
    const abort = new AbortController();
    const { model, calls } = analyticModel(modelSampling("sd15"));
    const onStep = ({ step }: SampledStep) => step === 1 && abort.abort();
    const guider = { ...options().guider, model } as SampleOptions["guider"];
    const run = sample(options({ guider, onStep: (step) => void onStep(step), signal: abort.signal }));
    await rejectsAs(abort.signal, run);
    assert.equal(calls.length, 2);
  });

  it("tells a model of the run, and asks it for its predictions in that run", async () => {
    const { model: plain } = analyticModel(modelSampling("sd15"));
    const runs: SamplingRun[] = [];
    const forRun = (run: SamplingRun) => {
      runs.push(run);
      return { predict: async (x: Tensor) => Tensor.full(x.shape, 2 * 0.18215) };
    };
    const guider = { ...options().guider, model: derivedModel({ ...plain, forRun }, {}) } as SampleOptions["guider"];
    const latent = { samples: Tensor.full([1, 4, 4, 4], 0.5), noise_mask: Tensor.full([1, 8, 8], 1) };
    const { latent: result } = await sample(options({ guider, latent }));
    assertClose(result.samples, Tensor.full([1, 4, 4, 4], 2), () => 1e-6, "prediction of the run");
    const [{ sampling, mask, latent: start, negative, steps }] = runs as [SamplingRun];
    assert.equal(runs.length, 1);
    assert.equal(sampling, plain.sampling);
    assert.deepEqual([mask!.shape, steps], [[1, 4, 4], 3]);
    assertClose(start, Tensor.full([1, 4, 4, 4], 0.5 * 0.18215), () => 1e-6, "start of the run");
    assert.equal(negative[0], (guider as { negative: unknown[] }).negative[0]);
  });

  it("tells a model which entries are of the negative side, if both sides are one conditioning", async () => {
    const { model: plain, calls } = analyticModel(modelSampling("sd15"));
    let negative: SamplingRun["negative"] = [];
    const forRun = (run: SamplingRun) => {
      negative = run.negative;
      return plain;
    };
    const both = [analyticEntry(0.5)];
    const guider = { ...options().guider, model: { ...plain, forRun }, positive: both, negative: both };
    await sample(options({ guider: guider as SampleOptions["guider"] }));
    const sides = calls[0]!.cond.map((entry) => negative.includes(entry));
    assert.deepEqual(sides, [true, false]);
  });

  it("passes the signal on to the model", async () => {
    const { signal } = new AbortController();
    const { model: plain } = analyticModel(modelSampling("sd15"));
    const seen = new Set<unknown>();
    const predict: typeof plain.predict = (x, sigma, cond, passed) => {
      seen.add(passed);
      return plain.predict(x, sigma, cond);
    };
    await sample(options({ guider: { ...options().guider, model: { ...plain, predict } }, signal }));
    assert.deepEqual([...seen], [signal]);
  });

  it("lets the event loop turn while a model computes without a pause", async () => {
    let turns = 0;
    const interval = setInterval(() => turns++, 1);
    const { model: plain } = analyticModel(modelSampling("sd15"));
    const predict: typeof plain.predict = (...call) => {
      const end = performance.now() + 6;
      while (performance.now() < end);
      return plain.predict(...call);
    };
    const sigmas = Float32Array.from({ length: 21 }, (_, i) => 20 - i);
    await sample(options({ guider: { ...options().guider, model: { ...plain, predict } }, sigmas }));
    clearInterval(interval);
    assert.ok(turns >= 5, `${turns} turns in 120 ms`);
  });

  it("refuses a latent, a mask or a list of draws that do not fit", async () => {
    const samples = Tensor.full([2, 4, 4, 4], 0.5);
    const latents: [Latent, RegExp][] = [
      [{ samples: Tensor.zeros([1, 4, 0, 4]) }, /^latent: expected at least one cell/],
      [{ samples: Tensor.zeros([4, 4, 4]) }, /^latent: expected a tensor \[B, C, H, W\]/],
      [{ samples, noise_mask: 5 as never }, /^noise_mask: expected a mask .* received 5\.$/],
      [{ samples, noise_mask: Tensor.zeros([0, 4, 4]) }, /^noise_mask: /],
      [{ samples, batch_index: [1] }, /^batchIndex: expected one index for each of the 2 items/],
      [{ samples, batch_index: "ab" as never }, /^batchIndex: /],
    ];
    for (const [latent, message] of latents)
      await assert.rejects(sample(options({ latent })), { name: "LatentkitError", message });
  });

  it("refuses an unknown sampler, whatever the sigmas", async () => {
    const sampler = { sampler: "toString" as Sampler, options: {} };
    await assert.rejects(sample(options({ sampler, sigmas: Float32Array.of() })), {
      code: "value.invalid",
    });
  });

  it("keeps an all-zero latent at zero in a format with a shift", async () => {
    const zero = { samples: Tensor.zeros([1, 4, 2, 2]) };
    const noise = { seed: 5n, enabled: false };
    const { model, calls } = analyticModel(modelSampling("sd3"));
    const guider = { ...options().guider, model } as SampleOptions["guider"];
    const { latent } = await sample(options({ guider, latent: zero, noise, sigmas: Float32Array.of(0.5, 0) }, "sd3"));
    assert.ok(calls[0]!.x.data.every((value) => value === 0));
    assert.deepEqual([...latent.samples.shape], [1, 16, 2, 2]);
  });
});

describe("noise of a solver", () => {
  const shape = [2, 4, 8, 8];
  const from = { layout: { shape }, seed: 5n, sameSeed: false, sigmas: Float32Array.of(1, 0) };
  const behind = (seed: bigint, skipped: number) => {
    const all = randn([skipped + 2, ...shape.slice(1)], { seed }).data;
    return Tensor.from(all.slice(skipped * 256), shape);
  };

  it("is the stream of the next seed, which begins anew at 0, or of the seed itself", () => {
    assertSameBits(solverNoise("stream", from).draw(1, 0), randn(shape, { seed: 6n }));
    assertSameBits(solverNoise("stream", { ...from, sameSeed: true }).draw(1, 0), randn(shape, { seed: 5n }));
    assertSameBits(solverNoise("stream", { ...from, seed: 2n ** 64n - 1n }).draw(1, 0), randn(shape, { seed: 0n }));
  });

  it("goes on behind the initial noise, and behind all draws of a batch that has a part of them", () => {
    const noise = solverNoise("global", from);
    assertSameBits(noise.draw(1, 0), behind(5n, 2));
    assertSameBits(noise.draw(1, 0), behind(5n, 4));
    assertSameBits(solverNoise("global", { ...from, layout: { shape, batchIndex: [2, 0] } }).draw(1, 0), behind(5n, 3));
  });
});
