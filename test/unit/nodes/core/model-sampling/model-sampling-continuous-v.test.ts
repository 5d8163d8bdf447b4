import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, modelSampling } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("ModelSamplingContinuousV", () => {
  const inputs = { sampling: "v_prediction", sigma_max: 500, sigma_min: 0.03 };

  it("has levels of angles between signal and noise, for the host to read", async () => {
    const { result } = await invokeNode("ModelSamplingContinuousV", { model: await patchable(), ...inputs });
    const { sampling } = result[0];
    assert.deepEqual(patchesOf(result[0]), [{ node: "ModelSamplingContinuousV", inputs }]);
    assert.equal(sampling.prediction, "v");
    assert.ok(Math.abs(sampling.sigmaMax - 500) < 1e-3 && Math.abs(sampling.sigmaMin - 0.03) < 1e-7);
    assert.equal(sampling.timestep(1), 0.5);
    assert.equal(sampling.sigma(0.5), 1);
    for (const sigma of [0.05, 3, 400])
      assert.ok(Math.abs(sampling.sigma(sampling.timestep(sigma)) / sigma - 1) < 1e-4);
    assert.deepEqual(sampling.sigmas, modelSampling("svd", { sigmaMax: 500, sigmaMin: 0.03 }).sigmas);
  });

  it("refuses a model that its host cannot change", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-sd21-v.safetensors");
    await refuses(invokeNode("ModelSamplingContinuousV", { model, ...inputs }), "host.missing", /v in continuous time/);
  });
});
