import assert from "node:assert/strict";
import { createPreviewHost, invokeNode, modelSampling } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { patchable } from "../../../../helpers/graph/file-host.js";
import { patchesOf } from "../../../../helpers/graph/patch-tests.js";

describe("ModelSamplingFlux", () => {
  const shifts = { max_shift: 1.15, base_shift: 0.5 };
  const resample = async (model: unknown, width: number, height: number) =>
    (await invokeNode("ModelSamplingFlux", { model, ...shifts, width, height })).result[0];

  it("shifts by the number of tokens, between 256 and 4096 and beyond", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-flux.safetensors");
    for (const [width, height, shift] of [
      [256, 256, 0.5],
      [1024, 1024, 1.15],
      [512, 1024, 0.5 + (0.65 * (2048 - 256)) / 3840],
      [2048, 1024, 0.5 + (0.65 * (8192 - 256)) / 3840],
    ] as const) {
      const { sampling } = await resample(model, width, height);
      const { sigmas } = modelSampling("flux", { shift });
      for (const at of [0, 2500, 5000, 9999]) assert.ok(Math.abs(sampling.sigmas[at]! / sigmas[at]! - 1) < 3e-7);
    }
  });

  it("has a finite schedule at the largest picture and shifts", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-flux.safetensors");
    for (const [max_shift, base_shift] of [
      [1.15, 0.5],
      [100, 0],
      [0, 100],
    ]) {
      const inputs = { model, max_shift, base_shift, width: 16384, height: 16384 };
      const { sampling } = (await invokeNode("ModelSamplingFlux", inputs)).result[0];
      assert.ok(sampling.sigmas.every((sigma: number) => sigma >= 0 && sigma <= 1));
      assert.equal(sampling.sigmaMax, 1);
    }
  });

  it("lets the host give a network of other times its own", async () => {
    const changed = await resample(await patchable("sd3"), 512, 512);
    assert.deepEqual(patchesOf(changed), [
      { node: "ModelSamplingFlux", inputs: { ...shifts, width: 512, height: 512 } },
    ]);
    assert.deepEqual(patchesOf(await resample(await patchable("flux-schnell"), 512, 512)), []);
  });

  it("refuses models that are no flow", async () => {
    const { model } = await createPreviewHost().loadCheckpoint("preview-sdxl.safetensors");
    await refuses(resample(model, 512, 512), "host.missing", /model sdxl predicts eps/);
  });
});
