import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { type Term, weightedSum } from "#src/tensor/ops.js";
import { assertItems, guidanceOf, itemOf, step, wave } from "../../../../helpers/graph/guidance.js";
import { assertClose } from "../../../../helpers/tensor/bits.js";

describe("RescaleCFG", () => {
  const combined = async (multiplier: number, others: object = {}): Promise<Tensor> =>
    weightedSum((await (await guidanceOf("RescaleCFG", { multiplier })).guidance.combine!(step(others))) as Term[]);
  const std = (values: readonly number[]) => {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
  };

  it("scales the guided velocity of each item to the deviation of the positive one", async () => {
    const actual = await combined(0.7);
    assertItems(actual, (item) => {
      const [x, cond, uncond] = [wave(1), wave(2), wave(3)].map((tensor) => itemOf(tensor, item)) as [
        number[],
        number[],
        number[],
      ];
      // noise, signal and v of sigma 2, step by step as in the paper
      const root = Math.sqrt(5);
      const velocity = (clean: readonly number[]) => clean.map((value, i) => ((x[i]! / 5 - value) * root) / 2);
      const [positive, negative] = [velocity(cond), velocity(uncond)];
      const guided = negative.map((value, i) => value + 7 * (positive[i]! - value));
      const factor = (0.7 * std(positive)) / std(guided) + 0.3;
      return guided.map((value, i) => x[i]! / 5 - (value * factor * 2) / root);
    });
  });

  it("is plain guidance for a multiplier of 0, and for a cfg of 1", async () => {
    const plain = weightedSum([
      [7, wave(2)],
      [-6, wave(3)],
    ]);
    assertClose(await combined(0), plain, () => 2e-6);
    assertClose(await combined(1, { cfg: 1 }), wave(2), () => 1e-6);
  });

  it("stays finite where estimates have no deviation", async () => {
    const flat = Tensor.zeros([2, 2, 3, 3]);
    const actual = await combined(1, { x: flat, cond: flat, uncond: flat });
    assert.ok(actual.data.every((value) => value === 0));
  });
});
