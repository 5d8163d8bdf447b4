import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, modelSampling } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("ModelSamplingDiscrete", () => {
  const load = async (family: string) =>
    (await createPreviewHost().loadCheckpoint(`preview-${family}.safetensors`)).model;
  const resample = async (model: unknown, sampling: string, zsnr = false) =>
    (await invokeNode("ModelSamplingDiscrete", { model, sampling, zsnr })).result[0];

  it("changes the table of a model that is read like that already", async () => {
    const model = await load("sd15");
    const changed = await resample(model, "eps", true);
    assert.deepEqual(changed.sampling.sigmas, modelSampling("sd15", { zsnr: true }).sigmas);
    assert.ok(changed.sampling.sigmaMax > 4000 && model.sampling.sigmaMax < 15);
    assert.equal(changed.sampling.latentFormat, model.sampling.latentFormat);
    const wide = { sampling: modelSampling("hunyuan-dit") };
    assert.deepEqual((await resample(wide, "v_prediction")).sampling.sigmas, wide.sampling.sigmas);
  });

  it("lets the host read the network otherwise, along the table of that reading", async () => {
    for (const [sampling, prediction, count] of [
      ["v_prediction", "v", 1000],
      ["x0", "eps", 1000],
      ["lcm", "eps", 50],
    ] as const) {
      const changed = await resample(await patchable("sdxl"), sampling);
      assert.deepEqual(patchesOf(changed), [{ node: "ModelSamplingDiscrete", inputs: { sampling, zsnr: false } }]);
      assert.deepEqual([changed.sampling.prediction, changed.sampling.sigmas.length], [prediction, count], sampling);
      assert.equal(changed.sampling.latentFormat, modelSampling("sdxl").latentFormat);
    }
  });

  it("refuses another reading where the host cannot change it", async () => {
    const model = await load("sd15");
    const message =
      /^ModelSamplingDiscrete, host "preview": model sd15 predicts eps; the host cannot read that as v\.$/;
    await refuses(resample(model, "v_prediction"), "host.missing", message);
    for (const sampling of ["lcm", "x0"]) await refuses(resample(model, sampling), "host.missing", / as (lcm|x0)\.$/);
    await refuses(resample(await load("flux"), "eps"), "host.missing", /predicts flow/);
  });
});
