import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, modelSampling } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("ModelSamplingContinuousEDM", () => {
  const levels = { sigma_max: 90, sigma_min: 0.01 };
  const resample = async (model: unknown, sampling: string, others: object = levels) =>
    (await invokeNode("ModelSamplingContinuousEDM", { model, sampling, ...others })).result[0];

  it("changes the levels of a model of its kind", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-svd.safetensors");
    const { sampling } = await resample(model, "v_prediction");
    assert.deepEqual(sampling.sigmas, modelSampling("svd", { sigmaMax: 90, sigmaMin: 0.01 }).sigmas);
    assert.ok(Math.abs(sampling.sigmaMax - 90) < 1e-4 && Math.abs(sampling.sigmaMin - 0.01) < 1e-8);
  });

  it("lets the host read any other model so", async () => {
    for (const [kind, prediction] of [
      ["edm", "edm"],
      ["eps", "eps"],
      ["v_prediction", "edm-v"],
    ] as const) {
      const changed = await resample(await patchable(), kind);
      assert.deepEqual(patchesOf(changed), [
        { node: "ModelSamplingContinuousEDM", inputs: { sampling: kind, ...levels } },
      ]);
      assert.equal(changed.sampling.prediction, prediction);
      assert.equal(changed.sampling.latentFormat.name, "SD15");
    }
    assert.equal((await resample(await patchable(), "edm_playground_v2.5")).sampling.latentFormat.scaleFactor, 0.5);
    const flow = await resample(await patchable("sd3"), "cosmos_rflow");
    assert.equal(patchesOf(flow).length, 1);
    assert.equal(flow.sampling.name, "sd3");
  });

  it("refuses models that its host cannot change, and levels of no table", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
    await refuses(
      resample(model, "edm"),
      "host.missing",
      /model sd15 predicts eps; the host cannot read that as edm\.$/,
    );
    await refuses(
      resample(model, "edm", { sigma_max: 1, sigma_min: 2 }),
      "value.out-of-range",
      /sigmaMin below sigmaMax/,
    );
    await refuses(resample(model, "edm", { sigma_max: 1, sigma_min: 0 }), "value.out-of-range", /sigmaMin/);
  });
});
