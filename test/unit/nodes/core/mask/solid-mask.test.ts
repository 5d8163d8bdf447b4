import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

const solid = async (value: unknown, width: unknown, height: unknown): Promise<unknown> =>
  (await invokeNode("SolidMask", { value, width, height })).result[0];

describe("SolidMask", () => {
  it("is one value", async () => assertSameBits(await solid(0.37, 5, 3), Tensor.full([1, 3, 5], 0.37)));

  it("refuses values and sizes out of range", async () => {
    for (const bad of [-0.1, 1.1, Number.NaN, "dark"]) await refuses(solid(bad, 5, 3), /^input\./, /input "value"/);
    for (const bad of [0, 16385, 1e6, Number.NaN, {}]) {
      await refuses(solid(1, bad, 3), /^input\./, /input "width"/);
      await refuses(solid(1, 3, bad), /^input\./, /input "height"/);
    }
  });
});
