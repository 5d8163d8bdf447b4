import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertClose } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

describe("ImageYUVToRGB", () => {
  it("undoes ImageRGBToYUV but for the rounded factors", async () => {
    const image = noisy([2, 4, 5, 3]);
    const [Y, U, V] = (await invokeNode("ImageRGBToYUV", { image })).result as [Tensor, Tensor, Tensor];
    assertClose(await resultOf("ImageYUVToRGB", { Y, U, V }), image, () => 2e-3);
  });

  it("takes the mean of each image's channels", async () => {
    const grey = (...values: number[]) => Tensor.from(values, [1, 1, 1, values.length]);
    const result = await resultOf("ImageYUVToRGB", {
      Y: grey(0.2, 0.4, 0.6),
      U: grey(0.7),
      V: grey(0.3, 0.5, 0.5, 0.3),
    });
    assertClose(result, grey(0.4 - 0.1403, 0.4 + 0.0714 - 0.0688, 0.4 + 0.3546), () => 1e-6);
  });

  it("refuses images of different sizes", async () => {
    const [Y, U] = [noisy([1, 2, 2, 3]), noisy([1, 2, 3, 3])];
    await refuses(
      resultOf("ImageYUVToRGB", { Y, U, V: Y }),
      "tensor.bad-shape",
      /input "U": expected an image of shape \[1, 2, 2, C\]/,
    );
  });
});
