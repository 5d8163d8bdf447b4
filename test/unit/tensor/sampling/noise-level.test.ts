import assert from "node:assert/strict";
import { type ModelSampling, type ModelSamplingName, modelSampling } from "latentkit";
import { MODEL_SAMPLINGS } from "#src/tensor/sampling/model-sampling.js";
import {
  ancestral,
  ancestral32,
  ancestralOf,
  firstWeight,
  percentToSigma,
  secondWeight,
  signalOf,
  withSignal,
} from "#src/tensor/sampling/noise-level.js";
import { golden } from "../../../helpers/tensor/golden.js";

const near = (value: number, expected: number, tolerance: number, what = "") =>
  assert.ok(Math.abs(value - expected) <= tolerance, `${what}: ${value}, expected ${expected}`);
const nearRatio = (value: number, expected: number, relative: number, what: string) =>
  near(value, expected, relative * expected, what);

interface Case {
  id: string;
  node: string;
  inputs: { model: string; sampling_percent: number; return_actual_sigma: boolean };
  outputs: [number];
}

/** The same maps without the parameters of the family, which a symbol holds, as another library would make them. */
const foreign = (sampling: ModelSampling) => Object.fromEntries(Object.entries(sampling)) as unknown as ModelSampling;

describe("percentToSigma", () => {
  it("is the golden sigma of each family to the last digits", () => {
    const { cases } = golden<Case>("core_nodes");
    const own = cases.filter(
      ({ node, inputs }) => node === "SamplingPercentToSigma" && inputs.return_actual_sigma === false,
    );
    assert.equal(own.length, 15);
    for (const { id, inputs, outputs } of own) {
      const sampling = modelSampling(inputs.model.split(":")[2] as ModelSamplingName);
      nearRatio(percentToSigma(sampling, inputs.sampling_percent), outputs[0], 1e-15, id);
    }
  });

  for (const name of MODEL_SAMPLINGS) {
    it(`${name}: falls from above the table to 0, through the table's ends`, () => {
      const sampling = modelSampling(name);
      const levels = [-1, 0, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, 1, 2].map((percent) => percentToSigma(sampling, percent));
      const first = sampling.prediction === "flow" ? 1 : 999999999.9;
      assert.deepEqual([levels[0], levels[1], levels[7], levels[8]], [first, first, 0, 0]);
      for (let i = 2; i < 8; i++) assert.ok(levels[i]! < levels[i - 1]!, `${levels}`);
      nearRatio(levels[2]!, sampling.sigmaMax, 1e-3, "at 0");
    });

    it(`${name}: a foreign sampling of the same maps has the same levels`, () => {
      const sampling = modelSampling(name);
      for (const percent of [0, 0.1, 0.5, 0.9, 1]) {
        // a cascade's largest level stands for more than one timestep, so its ends cannot be told from its maps
        const tolerance = name.startsWith("cascade") ? 0.1 : 1e-5;
        nearRatio(
          percentToSigma(foreign(sampling), percent),
          percentToSigma(sampling, percent),
          tolerance,
          `${percent}`,
        );
      }
    });
  }

  it("an EDM model's levels are equally far apart by logarithm", () => {
    const sampling = modelSampling("svd");
    nearRatio(percentToSigma(sampling, 0.5), Math.sqrt(0.002 * 700), 1e-12, "middle");
  });
});

describe("withSignal", () => {
  it("replaces a flow's first level of 1 alone, in a copy", () => {
    const sigmas = Float32Array.of(1, 0.5, 0);
    const replaced = withSignal(modelSampling("sd3"), sigmas);
    assert.deepEqual([...replaced], [Math.fround(2.9997 / 2.9998), 0.5, 0]);
    assert.equal(sigmas[0], 1);
  });

  it("leaves lower levels and other models alone", () => {
    const lower = Float32Array.of(0.9, 0);
    assert.equal(withSignal(modelSampling("sd3"), lower), lower);
    const others = Float32Array.of(14, 1, 0);
    assert.equal(withSignal(modelSampling("sd15"), others), others);
    const none = new Float32Array(0);
    assert.equal(withSignal(modelSampling("sd3"), none), none);
  });
});

const STEPS: [sigma: number, next: number][] = [
  [14.6, 7],
  [5, 4.9],
  [1, 0.1],
  [0.2, 0.029],
];

describe("ancestral", () => {
  for (const step of [ancestral, ancestral32]) {
    it(`${step.name}: eta 0 steps to the next level and adds nothing`, () => {
      assert.deepEqual(step(5, 3, 0), { down: 3, up: 0 });
    });

    it(`${step.name}: both variances sum to that of the next level, eta 1 goes down to next^2 / sigma`, () => {
      for (const [sigma, next] of STEPS) {
        for (const eta of [0.3, 0.7, 1]) {
          const { down, up } = step(sigma, next, eta);
          near(down * down + up * up, next * next, 1e-6 * next * next);
        }
        near(step(sigma, next, 1).down, (next * next) / sigma, 1e-5 * next);
      }
    });

    it(`${step.name}: the last step, a sigma that rises and an infinite one are all new noise`, () => {
      assert.deepEqual(step(5, 0, 1), { down: 0, up: 0 });
      assert.deepEqual(step(3, 5, 1), { down: 0, up: 5 });
      assert.deepEqual(step(Number.POSITIVE_INFINITY, 5, 0.5), { down: 0, up: 5 });
    });
  }

  it("ancestral32 loses the digits that the reference loses, ancestral does not", () => {
    const [sigma, next] = [14.614640235900879, 0.029167160391807556];
    near(ancestral32(sigma, next, 1).down, 5.81037e-5, 1e-9);
    near(ancestral(sigma, next, 1).down, 5.82103e-5, 1e-9);
  });
});

describe("ancestralOf", () => {
  const flow = modelSampling("sd3");

  it("a flow's step keeps signal and noise of the next level", () => {
    for (const eta of [0, 0.4, 1]) {
      const { down, up, scale } = ancestralOf(flow, 0.8, 0.5, eta);
      near((1 - down) * scale, 0.5, 1e-12);
      near((down * scale) ** 2 + up ** 2, 0.25, 1e-12);
      near(down, 0.5 * (1 - 0.375 * eta), 1e-12);
    }
  });

  it("other models' steps are ancestral32", () => {
    assert.deepEqual(ancestralOf(modelSampling("sd15"), 5, 3, 0.5), { ...ancestral32(5, 3, 0.5), scale: 1 });
  });

  it("a flow whose sigmas rise is refused", () => {
    assert.throws(() => ancestralOf(flow, 0.5, 0.8, 1), { code: "value.out-of-range" });
    assert.throws(() => ancestralOf(flow, 0.8, 0.5, Number.NaN), { code: "value.out-of-range" });
  });
});

/** Integral of exp(s - h) * g(s / h) over s from 0 to h, by Simpson's rule. */
function integral(h: number, g: (share: number) => number): number {
  const parts = 4000;
  let sum = 0;
  for (let i = 0; i <= parts; i++) {
    const weight = i === 0 || i === parts ? 1 : 2 + 2 * (i % 2);
    sum += weight * Math.exp((h * i) / parts - h) * g(i / parts);
  }
  return (sum * h) / (3 * parts);
}

describe("weights of exponential integrators", () => {
  for (const h of [-1.5, -1e-2, -1e-4, 1e-6, 9.9e-5, 1.01e-4, 1e-3, 0.3, 2, 8]) {
    it(`h ${h}: the integrals of a constant and of a line`, () => {
      const [first, second] = [integral(h, () => 1), integral(h, (share) => share)];
      assert.ok(Math.abs(firstWeight(h) - first) <= 1e-11 * Math.abs(first), `${firstWeight(h)}, expected ${first}`);
      assert.ok(Math.abs(secondWeight(h) - second) <= 1e-11 * Math.abs(second), `${secondWeight(h)} and ${second}`);
    });
  }

  it("a way of no length has no weights", () => {
    assert.deepEqual([firstWeight(0) + 0, secondWeight(0)], [0, 0]);
  });
});

describe("signalOf", () => {
  it("is 1 - sigma of a flow and 1 of others", () => {
    assert.equal(signalOf(modelSampling("sd3"), 0.25), 0.75);
    assert.equal(signalOf(modelSampling("sd15"), 0.25), 1);
  });
});
