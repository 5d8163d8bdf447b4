import assert from "node:assert/strict";
import { modelSampling, randn, type Tensor } from "latentkit";
import {
  type CheckpointSampling,
  cleanOf,
  inputScale,
  type Reading,
  samplingOf,
} from "#src/host/checkpoint/diffusion/sampling.js";

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
  });
});

const x = randn([1, 4, 2, 2], { seed: 1 });
const out = randn([1, 4, 2, 2], { seed: 2 });

/** Factors of the noisy latent and of the network's output in the estimate, at a noise level and a timestep. */
const FACTORS: Readonly<Record<Reading, (sigma: number, t: number) => readonly [number, number]>> = {
  x0: () => [0, 1],
  flow: (sigma) => [1, -sigma],
  eps: (sigma) => [1, -sigma],
  v: (sigma) => [1 / (1 + sigma ** 2), -sigma / Math.hypot(1, sigma)],
  "edm-v": (sigma) => [1 / (1 + sigma ** 2), -sigma / Math.hypot(1, sigma)],
  edm: (sigma) => [0.25 / (0.25 + sigma ** 2), (0.5 * sigma) / Math.hypot(0.5, sigma)],
  lcm: (sigma, t) => {
    const skip = 0.25 / ((10 * t) ** 2 + 0.25);
    const toClean = (10 * t) / Math.hypot(10 * t, 0.5);
    return [skip + toClean, -sigma * toClean];
  },
};

function assertNear(actual: Tensor, [ofX, ofOut]: readonly [number, number], what: string): void {
  for (let i = 0; i < x.size; i++) {
    const expected = ofX * x.data[i]! + ofOut * out.data[i]!;
    assert.ok(Math.abs(actual.data[i]! - expected) <= 2e-6 * Math.max(1, Math.abs(expected)), `${what} ${i}`);
  }
}

describe("cleanOf", () => {
  for (const [reading, factors] of Object.entries(FACTORS))
    it(`reads ${reading} by its formula`, () => {
      for (const [sigma, timestep] of [
        [0.0291675, 0],
        [0.7, 150.5],
        [14.6146, 999],
      ] as const) {
        const clean = cleanOf(reading as Reading, { x, out, sigma, timestep });
        assertNear(clean, factors(sigma, timestep), `${reading} at ${sigma}`);
      }
    });

  it("leaves nothing of the network at timestep 0 of lcm", () => {
    assert.deepEqual([...cleanOf("lcm", { x, out, sigma: 0.03, timestep: 0 }).data], [...x.data]);
  });
});

describe("inputScale", () => {
  it("makes the variance of a noisy latent 1, or that of edm's data", () => {
    assert.equal(inputScale("eps", 0), 1);
    assert.equal(inputScale("v", Math.sqrt(3)).toFixed(12), (1 / 2).toFixed(12));
    assert.equal(inputScale("edm", 0), 2);
    assert.equal(inputScale("edm-v", Math.sqrt(3)).toFixed(12), (1 / 2).toFixed(12));
  });
});
