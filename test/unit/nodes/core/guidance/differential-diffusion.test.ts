import assert from "node:assert/strict";
import { invokeNode, type Model, sigmas, Tensor } from "latentkit";
import { guidanceOf } from "../../../../helpers/graph/guidance.js";

describe("DifferentialDiffusion", () => {
  const levels = sigmas({ scheduler: "normal", steps: 10 });
  const grey = Tensor.from([0, 0.25, 0.5, 0.75, 1], [1, 1, 1, 5]);
  const maskOf = ({ guidance }: Model, sigma: number, all = levels) => [...guidance!.mask!(grey, sigma, all).data];

  it("opens grey parts when their share of the schedule is left", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", {});
    assert.deepEqual(maskOf(model, levels[0]!), [0, 0, 0, 0, 1]);
    // timesteps 999, 888 …: a quarter is left from 249.75 on
    const opened = [...levels.subarray(0, 10)].map((sigma) => maskOf(model, sigma).indexOf(1));
    assert.deepEqual(opened, [4, 4, 4, 3, 3, 2, 2, 1, 1, 0]);
    assert.deepEqual([...grey.data], [0, 0.25, 0.5, 0.75, 1]);
  });

  it("counts from the first to the last level of a schedule that does not end in 0", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", {});
    const part = levels.slice(2, 7);
    assert.deepEqual(maskOf(model, part[0]!, part), [0, 0, 0, 0, 1]);
    assert.deepEqual(maskOf(model, part[2]!, part), [0, 0, 1, 1, 1]);
    assert.deepEqual(maskOf(model, part[4]!, part), [1, 1, 1, 1, 1]);
    assert.deepEqual(maskOf(model, part[0]!, part.slice(0, 1)), [0, 0, 0, 0, 1]);
  });

  it("mixes with the mask itself by its strength", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", { strength: 0.5 });
    assert.deepEqual(maskOf(model, levels[0]!), [0, 0.125, 0.25, 0.375, 1]);
  });

  it("counts in the timesteps of the sampling that the model has in the end", async () => {
    const { model } = await guidanceOf("DifferentialDiffusion", {});
    const inputs = { model, sampling: "eps", zsnr: true };
    const { result } = await invokeNode("ModelSamplingDiscrete", inputs);
    const all = sigmas({ model: result[0].sampling, scheduler: "normal", steps: 10 });
    const opened = [...all.subarray(0, 10)].map((sigma) => maskOf(result[0], sigma, all).indexOf(1));
    assert.deepEqual(opened, [4, 4, 4, 3, 3, 2, 2, 1, 1, 0]);
  });
});
