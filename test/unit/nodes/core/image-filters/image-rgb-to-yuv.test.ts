import { invokeNode, Tensor } from "latentkit";
import { assertClose } from "../../../../helpers/tensor/bits.js";

describe("ImageRGBToYUV", () => {
  it("returns luma and differences of the primary colours, white and black", async () => {
    const image = Tensor.from([1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0], [1, 1, 5, 3]);
    const { result } = await invokeNode("ImageRGBToYUV", { image });
    const expected = [
      [0.299, 0.587, 0.114, 1, 0],
      [0.5 - 0.299 * 0.564, 0.5 - 0.587 * 0.564, 0.5 + 0.886 * 0.564, 0.5, 0.5],
      [0.5 + 0.701 * 0.713, 0.5 - 0.587 * 0.713, 0.5 - 0.114 * 0.713, 0.5, 0.5],
    ];
    for (const [k, values] of expected.entries()) {
      const grey = values.flatMap((value) => [value, value, value]);
      assertClose(result[k as 0], Tensor.from(grey, [1, 1, 5, 3]), () => 1e-6, "YUV"[k]);
    }
  });
});
