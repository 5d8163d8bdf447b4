import assert from "node:assert/strict";
import { type ModelSampling, type ModelSamplingName, modelSampling } from "latentkit";
import { MODEL_SAMPLINGS } from "#src/tensor/sampling/model-sampling.js";
import { percentToSigma, withSignal } from "#src/tensor/sampling/noise-level.js";
import { golden } from "../../../helpers/tensor/golden.js";

interface Case {
  id: string;
  node: string;
  inputs: { model: string; sampling_percent: number; return_actual_sigma: boolean };
  outputs: [number];
}

const near = (value: number, expected: number, relative: number, what: string) =>
  assert.ok(Math.abs(value - expected) <= relative * expected, `${what}: ${value}, expected ${expected}`);

/** The same maps without the parameters of the family, as another library would make them. */
const foreign = ({ name, prediction, sigmas, sigmaMin, sigmaMax, latentFormat, ...maps }: ModelSampling) => ({
  name,
  prediction,
  sigmas,
  sigmaMin,
  sigmaMax,
  latentFormat,
  timestep: maps.timestep,
  sigma: maps.sigma,
});

describe("percentToSigma", () => {
  it("is the golden sigma of each family to the last digits", () => {
    const { cases } = golden<Case>("core_nodes");
    const own = cases.filter(
      ({ node, inputs }) => node === "SamplingPercentToSigma" && inputs.return_actual_sigma === false,
    );
    assert.equal(own.length, 15);
    for (const { id, inputs, outputs } of own) {
      const sampling = modelSampling(inputs.model.split(":")[2] as ModelSamplingName);
      near(percentToSigma(sampling, inputs.sampling_percent), outputs[0], 1e-15, id);
    }
  });

  for (const name of MODEL_SAMPLINGS) {
    it(`${name}: falls from above the table to 0, through the table's ends`, () => {
      const sampling = modelSampling(name);
      const levels = [-1, 0, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, 1, 2].map((percent) => percentToSigma(sampling, percent));
      const first = sampling.prediction === "flow" ? 1 : 999999999.9;
      assert.deepEqual([levels[0], levels[1], levels[7], levels[8]], [first, first, 0, 0]);
      for (let i = 2; i < 8; i++) assert.ok(levels[i]! < levels[i - 1]!, `${levels}`);
      near(levels[2]!, sampling.sigmaMax, 1e-3, "at 0");
    });

    it(`${name}: a foreign sampling of the same maps has the same levels`, () => {
      const sampling = modelSampling(name);
      for (const percent of [0, 0.1, 0.5, 0.9, 1]) {
        // a cascade's largest level stands for more than one timestep, so its ends cannot be told from its maps
        const tolerance = name.startsWith("cascade") ? 0.1 : 1e-5;
        near(percentToSigma(foreign(sampling), percent), percentToSigma(sampling, percent), tolerance, `${percent}`);
      }
    });
  }

  it("an EDM model's levels are equally far apart by logarithm", () => {
    const sampling = modelSampling("svd");
    near(percentToSigma(sampling, 0.5), Math.sqrt(0.002 * 700), 1e-12, "middle");
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
