import assert from "node:assert/strict";
import { invokeNode, modelSampling } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("ModelSamplingStableCascade", () => {
  const resample = async (model: unknown, shift: number) =>
    (await invokeNode("ModelSamplingStableCascade", { model, shift })).result[0];

  it("changes the levels of a model of Stable Cascade", async () => {
    const { sampling } = await resample({ sampling: modelSampling("cascade-b") }, 3);
    assert.deepEqual(sampling.sigmas, modelSampling("cascade-b", { shift: 3 }).sigmas);
    assert.equal(sampling.name, "cascade-b");
    assert.equal(sampling.latentFormat.name, "SC_B");
  });

  it("lets the host give another network its times", async () => {
    const changed = await resample(await patchable(), 3);
    assert.deepEqual(patchesOf(changed), [{ node: "ModelSamplingStableCascade", inputs: { shift: 3 } }]);
    assert.deepEqual(changed.sampling.sigmas, modelSampling("cascade-c", { shift: 3 }).sigmas);
  });

  it("refuses flow models", async () => {
    await refuses(resample({ sampling: modelSampling("sd3") }, 2), "host.missing", /predicts flow/);
  });
});
