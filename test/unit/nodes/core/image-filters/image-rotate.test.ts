import { Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

describe("ImageRotate", () => {
  const image = Tensor.from([1, 2, 3, 4, 5, 6], [1, 2, 3, 1]);
  const turns: [string, number[], number[]][] = [
    ["none", [1, 2, 3, 4, 5, 6], [1, 2, 3, 1]],
    ["90 degrees", [4, 1, 5, 2, 6, 3], [1, 3, 2, 1]],
    ["180 degrees", [6, 5, 4, 3, 2, 1], [1, 2, 3, 1]],
    ["270 degrees", [3, 6, 2, 5, 1, 4], [1, 3, 2, 1]],
  ];
  for (const [rotation, values, shape] of turns) {
    it(`turns clockwise by ${rotation}`, async () => {
      assertSameBits(await resultOf("ImageRotate", { image, rotation }), Tensor.from(values, shape));
    });
  }

  it("is back where it was after four quarters, batch and colours too", async () => {
    const batch = noisy([2, 3, 5, 4]);
    let result = batch;
    for (let turn = 0; turn < 4; turn++)
      result = await resultOf("ImageRotate", { image: result, rotation: "90 degrees" });
    assertSameBits(result, batch);
  });
});
