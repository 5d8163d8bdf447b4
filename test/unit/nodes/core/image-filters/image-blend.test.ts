import { Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

const blend = (image1: Tensor, image2: Tensor) =>
  resultOf("ImageBlend", { image1, image2, blend_factor: 0.3, blend_mode: "screen" });

describe("ImageBlend", () => {
  it("blends one image with each of a batch", async () => {
    const [one, many] = [noisy([1, 3, 4, 3]), noisy([3, 3, 4, 3], 2)];
    const parts = [0, 1, 2].map((i) => blend(one, Tensor.from(many.data.slice(36 * i, 36 * i + 36), [1, 3, 4, 3])));
    const values = (await Promise.all(parts)).flatMap(({ data }) => [...data]);
    assertSameBits(await blend(one, many), Tensor.from(values, [3, 3, 4, 3]));
  });

  it("names the image whose batch or channels do not fit", async () => {
    const image = noisy([2, 3, 4, 4]);
    await refuses(blend(image, noisy([3, 3, 4, 4])), "tensor.bad-shape", /input "image2": expected a batch of 2 or 1/);
    await refuses(blend(image, noisy([2, 3, 4, 3])), "tensor.bad-shape", /input "image2": .* at least 4 channels/);
  });
});
