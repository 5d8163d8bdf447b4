import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";

describe("FluxKontextImageScale", () => {
  const sizeOf = async (width: number, height: number) => {
    const image = Tensor.full([1, height, width, 3], 0.5);
    const [scaled] = (await invokeNode("FluxKontextImageScale", { image })).result as [Tensor];
    return [scaled.shape[2], scaled.shape[1]];
  };

  it("takes the size of nearest proportions", async () => {
    assert.deepEqual(await sizeOf(64, 64), [1024, 1024]);
    assert.deepEqual(await sizeOf(160, 90), [1392, 752]);
    assert.deepEqual(await sizeOf(20, 90), [672, 1568]);
    assert.deepEqual(await sizeOf(30, 20), [1248, 832]);
    assert.deepEqual(await sizeOf(20, 30), [832, 1248]);
  });
});
