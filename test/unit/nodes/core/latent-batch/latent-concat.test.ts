import { invokeNode, type Latent, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const one = { samples: Tensor.from([0, 1], [2, 1, 1, 1]), k: 1 };
const two = { samples: Tensor.from([7], [1, 1, 1, 1]) };
const concat = async (dim: string, samples2: object = two) =>
  ((await invokeNode("LatentConcat", { samples1: one, samples2, dim })).result[0] as Latent).samples;

describe("LatentConcat", () => {
  it("appends the second latent, its batch repeated, or puts it first", async () => {
    assertSameBits(await concat("x"), Tensor.from([0, 7, 1, 7], [2, 1, 1, 2]));
    assertSameBits(await concat("-x"), Tensor.from([7, 0, 7, 1], [2, 1, 1, 2]));
    assertSameBits(await concat("-y"), Tensor.from([7, 0, 7, 1], [2, 1, 2, 1]));
    assertSameBits(await concat("t"), Tensor.from([0, 7, 1, 7], [2, 2, 1, 1]));
  });

  it("refuses latents that differ elsewhere", async () => {
    const wide = { samples: Tensor.zeros([1, 1, 1, 2]) };
    await refuses(concat("y", wide), "input.invalid", /input "samples2": expected a latent that differs/);
    await refuses(concat("x", { samples: Tensor.zeros([1, 1, 1]) }), "input.invalid", /samples2/);
  });
});
