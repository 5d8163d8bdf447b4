import assert from "node:assert/strict";
import { modelSampling, Tensor } from "latentkit";
import { intoModel, outOfModel, withChannels } from "#src/host/sampling/latent-space.js";
import { refuses } from "../../../helpers/errors.js";
import { assertClose } from "../../../helpers/tensor/bits.js";

describe("latents in a model's units", () => {
  const shape = [2, 4, 2, 3];
  const values = Array.from({ length: 48 }, (_, i) => Math.fround(Math.sin(i) * 3));
  const latent = Tensor.from(values, shape);

  it("are scaled, and come back", () => {
    const sampling = modelSampling("sdxl");
    const inside = intoModel(latent, sampling);
    assertClose(
      inside,
      Tensor.from(
        values.map((value) => value * 0.13025),
        shape,
      ),
      () => 1e-6,
    );
    assertClose(outOfModel(inside, sampling), latent, () => 1e-5);
  });

  it("have a mean and a deviation for each channel in Playground 2.5", () => {
    const sampling = modelSampling("playground25");
    const mean = [-1.6574, 1.886, -1.383, 2.5155];
    const deviation = [8.4927, 5.9022, 6.5498, 5.2299];
    const inside = intoModel(latent, sampling);
    const channel = (i: number) => Math.floor(i / 6) % 4;
    const expected = values.map((value, i) => ((value - mean[channel(i)]!) * 0.5) / deviation[channel(i)]!);
    assertClose(inside, Tensor.from(expected, shape), () => 1e-6);
    assertClose(outOfModel(inside, sampling), latent, () => 1e-5);
  });

  it("are divided by the share of the signal in a flow, with means of channels as without", () => {
    const { latentFormat, ...sd3 } = modelSampling("sd3");
    const plain = { ...latentFormat, channels: 4, scaleFactor: 1, shiftFactor: 0 };
    const statistics = { mean: [0, 0, 0, 0], deviation: [1, 1, 1, 1] };
    for (const format of [plain, { ...plain, statistics }]) {
      const outside = outOfModel(latent, { ...sd3, latentFormat: format }, 0.75);
      const expected = values.map((value) => 4 * value);
      assertClose(outside, Tensor.from(expected, shape), () => 1e-5);
    }
  });

  it("get the channels of the model if they are empty, unless its cells have another size", async () => {
    const empty = Tensor.zeros([1, 4, 2, 3]);
    assert.deepEqual(withChannels(empty, modelSampling("flux")).shape, [1, 16, 2, 3]);
    const own = Tensor.zeros([1, 128, 2, 3]);
    assert.equal(withChannels(own, modelSampling("flux2")), own);
    const expected = /^latent: expected one of 128 channels, a cell for 16 x 16 pixels \(EmptyFlux2LatentImage\)/;
    await refuses(() => withChannels(empty, modelSampling("flux2")), "tensor.bad-shape", expected);
  });

  it("stay zeros if all are", () => {
    const zeros = Tensor.zeros(shape);
    assert.equal(intoModel(zeros, modelSampling("playground25")), zeros);
  });
});
