import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, modelSampling } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("ModelSamplingAuraFlow", () => {
  const resample = async (model: unknown, shift: number) =>
    (await invokeNode("ModelSamplingAuraFlow", { model, shift })).result[0];

  it("changes the levels of a model that gets the same times, without its host", async () => {
    const model = await patchable("auraflow");
    const changed = await resample(model, 2.5);
    assert.deepEqual(changed.sampling.sigmas, modelSampling("auraflow", { shift: 2.5 }).sigmas);
    assert.notDeepEqual(changed.sampling.sigmas, model.sampling.sigmas);
    assert.equal(changed.sampling.name, "auraflow");
    assert.deepEqual(patchesOf(changed), []);
  });

  it("lets the host give its network other times", async () => {
    const changed = await resample(await patchable("sd3"), 2.5);
    assert.deepEqual(patchesOf(changed), [{ node: "ModelSamplingAuraFlow", inputs: { shift: 2.5 } }]);
    assert.equal(changed.sampling.latentFormat, modelSampling("sd3").latentFormat);
    assert.equal(changed.sampling.name, "sd3");
  });

  it("refuses models of another kind, and a shift of 0", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-sd15.safetensors");
    await refuses(resample(model, 2), "host.missing", /model sd15 predicts eps; the host cannot read that as flow\.$/);
    await refuses(resample(model, 0), "value.out-of-range", /shift: expected a finite number above 0/);
  });
});
