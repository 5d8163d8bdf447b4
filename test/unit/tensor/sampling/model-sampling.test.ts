import assert from "node:assert/strict";
import { modelSampling, SCHEDULERS, sigmas } from "latentkit";
import { distilledSampling } from "#src/tensor/sampling/model-sampling.js";

describe("distilledSampling", () => {
  const whole = modelSampling("sd15");
  const distilled = distilledSampling(whole);

  it("has every 20th level of the table, the last one included", () => {
    assert.equal(distilled.sigmas.length, 50);
    assert.equal(distilled.sigmaMax, whole.sigmaMax);
    assert.equal(distilled.sigmaMin, whole.sigmas[19]);
    assert.equal(distilled.sigmas[48], whole.sigmas[979]);
  });

  it("has the timesteps of the whole table, of the nearest level and between two", () => {
    for (const at of [0, 17, 49]) {
      assert.equal(distilled.timestep(distilled.sigmas[at]!), 20 * at + 19);
      assert.ok(Math.abs(distilled.sigma(20 * at + 19) / distilled.sigmas[at]! - 1) < 3e-7);
    }
    assert.equal(distilled.timestep(distilled.sigmas[17]! * 1.001), 359);
    assert.deepEqual([distilled.timestep(1e-9), distilled.timestep(1e9)], [19, 999]);
    const between = Math.sqrt(distilled.sigmas[17]! * distilled.sigmas[18]!);
    assert.ok(Math.abs(distilled.sigma(369) / between - 1) < 3e-7);
    assert.equal(distilled.sigma(-5), distilled.sigma(19));
  });

  it("schedules the four steps of a latent consistency model", () => {
    const four = sigmas({ model: distilled, sampler: "lcm", scheduler: "sgm_uniform", steps: 4 });
    assert.equal(four.length, 5);
    assert.deepEqual([four[0]!.toFixed(4), four[4]], [whole.sigmaMax.toFixed(4), 0]);
    for (const [i, level] of [...four.subarray(0, 4)].entries()) {
      assert.ok(i === 0 || level < four[i - 1]!, String(level));
    }
  });

  it("is scheduled by every scheduler, those that pick levels of the table among its 50", () => {
    const levels = new Set([...distilled.sigmas, 0]);
    for (const scheduler of SCHEDULERS) {
      const falling = [...sigmas({ model: distilled, scheduler, steps: 8 })];
      assert.ok(falling.length >= 9 && falling[0]! > 14.6 && falling.at(-1) === 0, scheduler);
      assert.ok(
        falling.every((level, i) => i === 0 || level < falling[i - 1]!),
        scheduler,
      );
      if (["simple", "ddim_uniform", "beta"].includes(scheduler))
        assert.ok(
          falling.every((level) => levels.has(level)),
          scheduler,
        );
    }
  });
});
