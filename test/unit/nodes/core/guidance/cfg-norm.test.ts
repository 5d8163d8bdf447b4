import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { guidanceOf, step } from "../../../../helpers/graph/guidance.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("CFGNorm", () => {
  const cells = (...values: [number, number][]) =>
    Tensor.from([...values.map(([a]) => a), ...values.map(([, b]) => b)], [1, 2, 1, values.length]);
  const changed = async (strength: number, denoised: Tensor, cond: Tensor) =>
    (await guidanceOf("CFGNorm", { strength })).guidance.after![0]!(denoised, step({ cond, x: denoised }));

  it("shortens cells that are longer than those of the positive side", async () => {
    const result = await changed(1, cells([6, 8], [0.3, 0.4], [0, 0]), cells([3, 4], [3, 4], [1, 1]));
    assertSameBits(result, cells([3, 4], [0.3, 0.4], [0, 0]));
  });

  it("refuses the norm before guidance", async () => {
    await refuses(guidanceOf("CFGNorm", { strength: 1, pre_cfg: true }), "value.invalid", /pre_cfg.*expected false/);
    await guidanceOf("CFGNorm", { strength: 1, pre_cfg: false });
  });

  it("multiplies all of them by its strength, in each item of a batch", async () => {
    const two = (tensor: Tensor) =>
      Tensor.from([...tensor.data, ...tensor.data.map((value) => 2 * value)], [2, 2, 1, 2]);
    const [denoised, cond] = [two(cells([6, 8], [0, 1])), two(cells([3, 4], [0, 4]))];
    const result = await changed(0.5, denoised, cond);
    assert.deepEqual([...result.data], [1.5, 0, 2, 0.5, 3, 0, 4, 1]);
  });
});
