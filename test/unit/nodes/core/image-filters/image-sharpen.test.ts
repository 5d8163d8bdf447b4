import { Tensor } from "latentkit";
import { assertClose } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

describe("ImageSharpen", () => {
  it("adds ten times alpha of what the blur takes away, and clamps", async () => {
    const image = noisy([2, 9, 11, 3]);
    const options = { sigma: 0.7 };
    const blurred = await resultOf("ImageBlur", { image, blur_radius: 3, ...options });
    const expected = image.data.map((value, i) => Math.min(Math.max(value + 2 * (value - blurred.data[i]!), 0), 1));
    const result = await resultOf("ImageSharpen", { image, sharpen_radius: 3, alpha: 0.2, ...options });
    assertClose(result, Tensor.from(expected, image.shape), () => 2e-6);
  });

  it("changes nothing where alpha is 0", async () => {
    const image = noisy([1, 4, 4, 3]);
    assertClose(await resultOf("ImageSharpen", { image, sharpen_radius: 1, sigma: 1, alpha: 0 }), image, () => 0);
  });
});
