import assert from "node:assert/strict";
import { randn, Tensor, type UpscaleModel } from "latentkit";
import { rejectsAs } from "../../../helpers/errors.js";
import { layerError } from "../../../helpers/models/layers.js";
import { tinyHost } from "../../../helpers/models/tiny-host.js";

describe("CheckpointUpscaler", () => {
  const host = tinyHost();

  it("enlarges pictures as nodes pass them, each item of a batch as alone", async () => {
    const model: UpscaleModel = await host().loadFile!("upscale_models", "tiny-4x.safetensors");
    assert.equal(model.scale, 4);
    const images = randn([2, 9, 7, 3], { seed: 1 });
    const large = await model.upscale(images);
    assert.deepEqual([...large.shape], [2, 36, 28, 3]);
    const first = await model.upscale(Tensor.from(images.data.slice(0, 189), [1, 9, 7, 3]));
    assert.ok(layerError(Tensor.from(large.data.slice(0, first.size), first.shape), first) < 1e-5);
  });

  it("stops when it is interrupted", async () => {
    const model: UpscaleModel = await host().loadFile!("upscale_models", "tiny-4x.safetensors");
    const signal = AbortSignal.abort();
    await rejectsAs(signal, model.upscale(Tensor.zeros([1, 8, 8, 3]), signal));
  });
});
