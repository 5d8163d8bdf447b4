import { Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

/** Each step takes the extreme of a value and its neighbours: four, or eight where corners are not tapered. */
function grown(mask: Tensor, expand: number, tapered: boolean): Tensor {
  const [, height, width] = mask.shape as [number, number, number];
  const pick = expand > 0 ? Math.max : Math.min;
  let values = mask.data;
  for (let step = 0; step < Math.abs(expand); step++) {
    const before = values;
    values = before.map((own, i) => {
      const [x, y] = [i % width, Math.floor(i / width) % height];
      let best = own;
      for (const dy of [-1, 0, 1])
        for (const dx of [-1, 0, 1]) {
          const isInside = x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height;
          if (isInside && !(tapered && dx !== 0 && dy !== 0)) best = pick(best, before[i + dy * width + dx]!);
        }
      return best;
    });
  }
  return Tensor.from(values, mask.shape);
}

describe("GrowMask", () => {
  for (const tapered_corners of [true, false]) {
    it(`equals as many single steps, ${tapered_corners ? "tapered" : "square"}`, async () => {
      const mask = noisy([2, 9, 14]);
      for (const expand of [-40, -7, -4, -1, 0, 1, 2, 3, 5, 6, 13, 30]) {
        const result = await resultOf("GrowMask", { mask, expand, tapered_corners });
        assertSameBits(result, grown(mask, expand, tapered_corners), String(expand));
      }
    });
  }

  it("takes no longer for the largest number than the mask is large", async () => {
    const mask = noisy([1, 3, 400]);
    const result = await resultOf("GrowMask", { mask, expand: 16384, tapered_corners: true });
    const most = mask.data.reduce((a, b) => Math.max(a, b));
    assertSameBits(result, Tensor.full([1, 3, 400], most));
  });
});
