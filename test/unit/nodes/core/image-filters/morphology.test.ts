import { Tensor } from "latentkit";
import { assertClose, assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

/** The greatest or least value in a window, by looking at all of it. */
function extreme(image: Tensor, side: number, pick: (...values: number[]) => number): Tensor {
  const [, height, width, channels] = image.shape as [number, number, number, number];
  const out = Tensor.zeros(image.shape);
  const before = Math.floor(side / 2);
  for (let i = 0; i < out.size; i++) {
    const [channel, x, y] = [i % channels, Math.floor(i / channels) % width, Math.floor(i / channels / width) % height];
    const start = Math.floor(i / (channels * width * height)) * height;
    let best = image.data[i]!;
    for (let row = Math.max(y - before, 0); row <= Math.min(y + side - 1 - before, height - 1); row++)
      for (let column = Math.max(x - before, 0); column <= Math.min(x + side - 1 - before, width - 1); column++)
        best = pick(best, image.data[((start + row) * width + column) * channels + channel]!);
    out.data[i] = best;
  }
  return out;
}

const less = (a: Tensor, b: Tensor) =>
  Tensor.from(
    a.data.map((value, i) => value - b.data[i]!),
    a.shape,
  );

describe("Morphology", () => {
  for (const kernel_size of [3, 4, 7, 12, 999]) {
    it(`is its definition with a kernel of ${kernel_size}`, async () => {
      const image = noisy([2, 13, 10, 3]);
      const run = (operation: string) => resultOf("Morphology", { image, operation, kernel_size });
      const dilated = (x: Tensor) => extreme(x, kernel_size, Math.max);
      const eroded = (x: Tensor) => extreme(x, kernel_size, Math.min);
      assertSameBits(await run("dilate"), dilated(image), "dilate");
      assertSameBits(await run("erode"), eroded(image), "erode");
      assertSameBits(await run("open"), dilated(eroded(image)), "open");
      assertSameBits(await run("close"), eroded(dilated(image)), "close");
      assertClose(await run("gradient"), less(dilated(image), eroded(image)), () => 0, "gradient");
      assertClose(await run("top_hat"), less(image, dilated(eroded(image))), () => 0, "top_hat");
      assertClose(await run("bottom_hat"), less(eroded(dilated(image)), image), () => 0, "bottom_hat");
    });
  }
});
