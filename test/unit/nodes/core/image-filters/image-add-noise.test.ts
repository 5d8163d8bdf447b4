import { createGenerator, Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

describe("ImageAddNoise", () => {
  it("adds the seed's noise times strength, clamped", async () => {
    const image = noisy([2, 5, 4, 3]);
    const noise = createGenerator({ seed: 7 }).randn(image.shape);
    const expected = image.data.map((value, i) =>
      Math.min(Math.max(Math.fround(value + Math.fround(noise.data[i]! * Math.fround(0.3))), 0), 1),
    );
    const result = await resultOf("ImageAddNoise", { image, seed: 7, strength: 0.3 });
    assertSameBits(result, Tensor.from(expected, image.shape));
  });

  it("changes nothing at strength 0", async () => {
    const image = noisy([1, 5, 4, 4]);
    assertSameBits(await resultOf("ImageAddNoise", { image, seed: 1, strength: 0 }), image);
  });
});
