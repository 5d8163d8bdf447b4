import { invokeNode, type Latent, Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const samples = { samples: Tensor.from([0, 1, 2, 3, 4, 5], [1, 1, 2, 3]), k: 1 };
const cut = async (dim: string, index: number, amount: number) =>
  ((await invokeNode("LatentCut", { samples, dim, index, amount })).result[0] as Latent).samples;

describe("LatentCut", () => {
  it("takes a part of an axis, cut at its end", async () => {
    assertSameBits(await cut("x", 1, 1), Tensor.from([1, 4], [1, 1, 2, 1]));
    assertSameBits(await cut("x", 1, 99), Tensor.from([1, 2, 4, 5], [1, 1, 2, 2]));
    assertSameBits(await cut("x", 99, 5), Tensor.from([2, 5], [1, 1, 2, 1]));
    assertSameBits(await cut("y", 1, 1), Tensor.from([3, 4, 5], [1, 1, 1, 3]));
    assertSameBits(await cut("t", 0, 1), samples.samples);
  });

  it("counts an index below 0 from the end", async () => {
    assertSameBits(await cut("x", -2, 1), Tensor.from([1, 4], [1, 1, 2, 1]));
    assertSameBits(await cut("x", -2, 9), Tensor.from([1, 2, 4, 5], [1, 1, 2, 2]));
    assertSameBits(await cut("y", -9, 1), Tensor.from([0, 1, 2], [1, 1, 1, 3]));
  });
});
