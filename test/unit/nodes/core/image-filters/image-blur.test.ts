import { Tensor } from "latentkit";
import { assertClose } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

/** A convolution with the Gaussian over a square, as its definition says, in double. */
function blurredPlainly(image: Tensor, radius: number, sigma: number): Tensor {
  const [, height, width, channels] = image.shape as [number, number, number, number];
  const at = (i: number, n: number): number => {
    let position = i;
    while (n > 1 && (position < 0 || position >= n)) position = position < 0 ? -position : 2 * (n - 1) - position;
    return n === 1 ? 0 : position;
  };
  const weight = (dy: number, dx: number) => Math.exp(-((dy / radius) ** 2 + (dx / radius) ** 2) / (2 * sigma ** 2));
  const out = Tensor.zeros(image.shape);
  for (let i = 0; i < out.size; i++) {
    const [channel, x, y] = [i % channels, Math.floor(i / channels) % width, Math.floor(i / channels / width) % height];
    const start = Math.floor(i / (channels * width * height)) * height;
    let [sum, total] = [0, 0];
    for (let dy = -radius; dy <= radius; dy++)
      for (let dx = -radius; dx <= radius; dx++) {
        const from = ((start + at(y + dy, height)) * width + at(x + dx, width)) * channels + channel;
        sum += weight(dy, dx) * image.data[from]!;
        total += weight(dy, dx);
      }
    out.data[i] = sum / total;
  }
  return out;
}

describe("ImageBlur", () => {
  const sizes: [number[], number, number][] = [
    [[2, 9, 7, 3], 1, 1],
    [[1, 12, 15, 4], 5, 0.3],
    [[1, 3, 1, 1], 31, 10],
    [[1, 40, 33, 3], 8, 0.1],
  ];
  for (const [shape, blur_radius, sigma] of sizes) {
    it(`is the mean by a Gaussian, mirrored at borders: [${shape}], radius ${blur_radius}, sigma ${sigma}`, async () => {
      const image = noisy(shape);
      const result = await resultOf("ImageBlur", { image, blur_radius, sigma });
      assertClose(result, blurredPlainly(image, blur_radius, sigma), () => 2e-6);
    });
  }
});
