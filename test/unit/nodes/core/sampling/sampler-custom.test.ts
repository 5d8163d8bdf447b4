import assert from "node:assert/strict";
import { invokeNode, type Latent, modelSampling, Tensor } from "latentkit";
import { analyticEntry, analyticModel } from "../../../../helpers/sampling/analytic-model.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("SamplerCustom", () => {
  const { model } = analyticModel(modelSampling("sd15"));
  const inputs = (sigmas: unknown, sampler: unknown = { sampler: "euler", options: {} }) => ({
    model,
    add_noise: true,
    noise_seed: 3,
    cfg: 2,
    positive: [analyticEntry(0.5)],
    negative: [analyticEntry(-0.5)],
    sampler,
    sigmas,
    latent_image: { samples: Tensor.full([1, 4, 4, 4], 0.5), name: "carried along" },
  });
  const outputs = async (sigmas: unknown, sampler?: unknown) =>
    (await invokeNode("SamplerCustom", inputs(sigmas, sampler))).result as [Latent, Latent];

  it("takes sigmas as a tensor, an array of floats or a list", async () => {
    const [expected] = await outputs(Tensor.from([4, 2, 0], [3]));
    for (const sigmas of [Float32Array.of(4, 2, 0), [4, 2, 0]])
      assertSameBits((await outputs(sigmas))[0].samples, expected.samples);
  });

  it("has the last estimate as its second output, and unknown keys in both", async () => {
    const [output, denoised] = await outputs([4, 2, 1]);
    assert.notDeepEqual(output.samples.data, denoised.samples.data);
    const [end, same] = await outputs([4, 2, 0]);
    assertSameBits(end.samples, same.samples);
    for (const latent of [output, denoised]) assert.equal(latent.name, "carried along");
  });

  it("returns one object twice where there was no step", async () => {
    const [output, denoised] = await outputs([4]);
    assert.equal(output, denoised);
  });

  it("refuses options that the sampler does not have, or of another type", async () => {
    const refused = (options: Record<string, unknown>) => outputs([4, 2, 0], { sampler: "euler", options });
    await assert.rejects(refused({ no_such: 1 }), { code: "value.invalid" });
    await assert.rejects(refused({ ancestral_seed: "other" }), {
      message: 'SamplerCustom, sampler euler, ancestral_seed: expected one of next, same, received "other".',
    });
    await assert.rejects(outputs([4, 2, 0], { sampler: "sa_solver", options: { tau_func: 5 } }), {
      message: "SamplerCustom, sampler sa_solver, tau_func: expected a function, received 5.",
    });
  });
});
