import assert from "node:assert/strict";
import { type ModelSampling, modelSampling } from "latentkit";
import { percentToSigma } from "#src/tensor/sampling/percent-to-sigma.js";

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) <= 1e-6 * expected, `${actual}, expected ${expected}`);

describe("percentToSigma", () => {
  it("is beyond all levels at 0 and 0 at 1", () => {
    assert.deepEqual(
      [-1, 0].map((p) => percentToSigma(modelSampling("sd15"), p)),
      [999999999.9, 999999999.9],
    );
    assert.equal(percentToSigma(modelSampling("flux"), 0), 1);
    for (const name of ["sd15", "sd3", "svd"] as const) assert.equal(percentToSigma(modelSampling(name), 1), 0);
  });

  it("counts in log sigma for continuous EDM", () => {
    const { sigmaMin, sigmaMax } = modelSampling("svd");
    near(percentToSigma(modelSampling("svd"), 0.25), sigmaMax ** 0.75 * sigmaMin ** 0.25);
  });

  it("counts in the time of the cosine for cascade", () => {
    const sampling = modelSampling("cascade-b");
    near(percentToSigma(sampling, 0.4), sampling.sigma(0.6));
  });

  it("counts in double for flows", () => {
    assert.equal(percentToSigma(modelSampling("sd3"), 0.25), (3 * 0.75) / (1 + 2 * 0.75));
    const mu = Math.exp(1.15);
    assert.equal(percentToSigma(modelSampling("flux"), 0.2), mu / (mu + (1 / 0.8 - 1)));
  });

  it("counts in the timesteps of a sampling that another library made", () => {
    for (const name of ["sd15", "svd", "sd3", "flux"] as const) {
      const { sigmas, sigmaMin, sigmaMax, prediction, latentFormat, timestep, sigma } = modelSampling(name);
      const foreign: ModelSampling = { name, sigmas, sigmaMin, sigmaMax, prediction, latentFormat, timestep, sigma };
      for (const percent of [1e-4, 0.3, 0.999])
        near(percentToSigma(foreign, percent), percentToSigma(modelSampling(name), percent));
    }
  });
});
