import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const invert = async (mask: unknown): Promise<unknown> => (await invokeNode("InvertMask", { mask })).result[0];

describe("InvertMask", () => {
  it("is 1 minus the mask, in a new tensor", async () => {
    const mask = Tensor.from([0, 0.25, 1, 2], [1, 2, 2]);
    const before = mask.clone();
    assertSameBits(await invert(mask), Tensor.from([1, 0.75, 0, -1], [1, 2, 2]));
    assertSameBits(mask, before);
    assertSameBits(await invert(Tensor.zeros([2, 2])), Tensor.full([1, 2, 2], 1));
  });

  it("refuses what is no mask", async () => {
    for (const bad of [undefined, null, 1, Tensor.zeros([3])]) await refuses(invert(bad), /^input\./, /input "mask"/);
  });
});
