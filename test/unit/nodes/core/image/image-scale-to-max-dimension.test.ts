import assert from "node:assert/strict";
import { invokeNode, LatentkitError, Tensor } from "latentkit";

async function sidesOf(height: number, width: number, largest_size: number): Promise<number[]> {
  const image = Tensor.full([2, height, width, 3], 0.5);
  const inputs = { image, upscale_method: "bilinear", largest_size };
  const { result } = await invokeNode("ImageScaleToMaxDimension", inputs);
  return [...(result[0] as Tensor).shape];
}

describe("ImageScaleToMaxDimension", () => {
  it("gives the longer side the size and keeps the proportions", async () => {
    assert.deepEqual(await sidesOf(30, 40, 64), [2, 48, 64, 3]);
    assert.deepEqual(await sidesOf(40, 30, 64), [2, 64, 48, 3]);
    assert.deepEqual(await sidesOf(9, 9, 64), [2, 64, 64, 3]);
  });

  it("rounds the other side half to even", async () => {
    assert.deepEqual(await sidesOf(4, 2, 5), [2, 5, 2, 3]);
  });

  it("refuses a size that leaves a side of 0", async () => {
    for (const [height, width, size] of [
      [8, 8, 0],
      [2, 90, 10],
    ] as const) {
      await assert.rejects(sidesOf(height, width, size), (error) => {
        assert.ok(error instanceof LatentkitError && error.code === "value.out-of-range");
        assert.match(
          error.message,
          /input "largest_size": expected a size at which both sides of .* keep at least one pixel/,
        );
        return true;
      });
    }
  });
});
