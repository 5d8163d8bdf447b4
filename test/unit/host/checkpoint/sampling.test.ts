import assert from "node:assert/strict";
import { modelSampling } from "latentkit";
import type { CheckpointSampling } from "#src/host/checkpoint/recognition/recognised.js";
import { readingOf, samplingOf } from "#src/host/checkpoint/sampling.js";

const EPS: CheckpointSampling = {
  schedule: "discrete",
  prediction: "eps",
  zeroTerminalSnr: false,
  latentFormat: "SD15",
};

describe("samplingOf", () => {
  it("has the noise levels of each family, under its name", () => {
    for (const [family, name] of [
      ["sd1", "sd15"],
      ["sd2", "sd21"],
      ["sdxl", "sdxl"],
      ["sdxl-refiner", "sdxl-refiner"],
    ] as const) {
      const sampling = samplingOf(family, EPS);
      assert.equal(sampling.name, name);
      assert.equal(sampling.sigmaMax, modelSampling("sd15").sigmaMax);
    }
  });

  it("follows the marks of the file", () => {
    const zero = samplingOf("sdxl", { ...EPS, prediction: "v", zeroTerminalSnr: true });
    assert.ok(zero.sigmaMax > 4000);
    const edm = { ...EPS, schedule: "edm", prediction: "v", sigmaMin: 0.01, sigmaMax: 50 } as const;
    const continuous = samplingOf("sdxl", edm);
    assert.ok(Math.abs(continuous.sigmaMax - 50) < 1e-3 && Math.abs(continuous.sigmaMin - 0.01) < 1e-6);
    assert.equal(samplingOf("sdxl", { ...EPS, latentFormat: "SDXL" }).latentFormat.scaleFactor, 0.13025);
    assert.equal(readingOf({ ...EPS, prediction: "v" }), "v");
  });
});
