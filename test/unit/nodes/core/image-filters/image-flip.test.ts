import { Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { resultOf } from "../../../../helpers/tensor/pictures.js";

const image = Tensor.from([1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60], [1, 2, 3, 2]);

describe("ImageFlip", () => {
  it("turns an image upside down", async () => {
    const result = await resultOf("ImageFlip", { image, flip_method: "x-axis: vertically" });
    assertSameBits(result, Tensor.from([4, 40, 5, 50, 6, 60, 1, 10, 2, 20, 3, 30], [1, 2, 3, 2]));
  });

  it("exchanges left and right, in every picture", async () => {
    const two = Tensor.from([...image.data, ...image.data], [2, 2, 3, 2]);
    const result = await resultOf("ImageFlip", { image: two, flip_method: "y-axis: horizontally" });
    const row = [3, 30, 2, 20, 1, 10, 6, 60, 5, 50, 4, 40];
    assertSameBits(result, Tensor.from([...row, ...row], [2, 2, 3, 2]));
  });
});
