import assert from "node:assert/strict";
import { invokeNode, type Latent, modelSampling, registry, Tensor } from "latentkit";
import { analyticEntry, analyticModel } from "../../../../helpers/sampling/analytic-model.js";
import { assertClose } from "../../../../helpers/tensor/bits.js";

describe("KSamplerAdvanced", () => {
  const { model } = analyticModel(modelSampling("sd3"));
  const run = async (latent_image: Latent, settings: Record<string, unknown>) => {
    const { result } = await invokeNode("KSamplerAdvanced", {
      model,
      add_noise: "enable",
      noise_seed: 7,
      steps: 6,
      cfg: 2,
      sampler_name: "euler",
      scheduler: "simple",
      positive: [analyticEntry(0.5)],
      negative: [analyticEntry(-0.5)],
      latent_image,
      start_at_step: 0,
      end_at_step: 10000,
      return_with_leftover_noise: "disable",
      ...settings,
    });
    return result[0] as Latent;
  };
  const empty = (): Latent => ({ samples: Tensor.zeros([1, 16, 4, 4]) });

  it("gives in two stages what it gives in one", async () => {
    const whole = await run(empty(), {});
    const first = await run(empty(), { end_at_step: 2, return_with_leftover_noise: "enable" });
    const second = await run(first, { add_noise: "disable", start_at_step: 2 });
    assertClose(second.samples, whole.samples, () => 1e-5, "two stages");
  });

  it("returns the input itself where the window is empty", async () => {
    const input = empty();
    for (const window of [{ start_at_step: 6 }, { start_at_step: 3, end_at_step: 3 }, { end_at_step: 0 }])
      assert.equal((await run(input, window)).samples, input.samples, JSON.stringify(window));
  });

  it("starts the CPU's noise, as its receipt says", () => {
    assert.equal(registry.get("KSamplerAdvanced")!.noiseStream!({}), "cpu");
  });
});
