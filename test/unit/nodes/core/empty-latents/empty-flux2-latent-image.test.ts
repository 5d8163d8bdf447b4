import { invokeNode, Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("EmptyFlux2LatentImage", () => {
  it("has a cell of 128 channels for 16 x 16 pixels, rounded down", async () => {
    const inputs = { width: 1000, height: 64, batch_size: 2 };
    const { result } = await invokeNode("EmptyFlux2LatentImage", inputs);
    assertSameBits((result[0] as { samples: Tensor }).samples, Tensor.zeros([2, 128, 4, 62]));
  });
});
