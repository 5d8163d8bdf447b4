import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf, valueAt } from "../../../../helpers/tensor/pictures.js";

/** A picture [1, 24, 24, 3] of a function of (x, y). */
function drawn(grey: (x: number, y: number) => number): Tensor {
  const image = Tensor.zeros([1, 24, 24, 3]);
  for (let i = 0; i < image.size; i++) image.data[i] = grey(Math.floor(i / 3) % 24, Math.floor(i / 72));
  return image;
}

const thresholds = { low_threshold: 0.1, high_threshold: 0.3 };
const marked = (edges: Tensor): string[] =>
  Array.from({ length: 576 }, (_, i) => [i % 24, Math.floor(i / 24)] as const)
    .filter(([x, y]) => valueAt(edges, x, y) === 1)
    .map(([x, y]) => `${x},${y}`);

/** Canny's steps in double, as they are published. */
function plainCanny(image: Tensor, low: number, high: number): number[] {
  const [, height, width] = image.shape as [number, number, number, number];
  const all = <T>(f: (x: number, y: number) => T): T[] =>
    Array.from({ length: height * width }, (_, i) => f(i % width, Math.floor(i / width)));
  const grey = all(
    (x, y) => 0.299 * valueAt(image, x, y) + 0.587 * valueAt(image, x, y, 1) + 0.114 * valueAt(image, x, y, 2),
  );
  const mirror = (i: number, n: number) => (i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i);
  const clamp = (i: number, n: number) => Math.min(Math.max(i, 0), n - 1);
  const near = [-2, -1, 0, 1, 2];
  const total = near.reduce((sum, d) => sum + Math.exp((-d * d) / 2), 0) ** 2;
  const smooth = all((x, y) => {
    let sum = 0;
    for (const dy of near)
      for (const dx of near)
        sum +=
          (Math.exp(-(dx * dx + dy * dy) / 2) / total) * grey[mirror(y + dy, height) * width + mirror(x + dx, width)]!;
    return sum;
  });
  const at = (x: number, y: number) => smooth[clamp(y, height) * width + clamp(x, width)]!;
  const gx = all((x, y) =>
    [-1, 0, 1].reduce((sum, d) => sum + (2 - Math.abs(d)) * (at(x + 1, y + d) - at(x - 1, y + d)), 0),
  );
  const gy = all((x, y) =>
    [-1, 0, 1].reduce((sum, d) => sum + (2 - Math.abs(d)) * (at(x + d, y + 1) - at(x + d, y - 1)), 0),
  );
  const length = gx.map((value, i) => Math.sqrt(value ** 2 + gy[i]! ** 2 + 1e-6));
  const lengthAt = (x: number, y: number) => (x < 0 || y < 0 || x >= width || y >= height ? 0 : length[y * width + x]!);
  const marks = all<number>((x, y) => {
    const i = y * width + x;
    const angle = (Math.round(Math.atan2(gy[i]!, gx[i]!) / (Math.PI / 4)) * Math.PI) / 4;
    const [dx, dy] = [Math.round(Math.cos(angle)), Math.round(Math.sin(angle))];
    const isRidge = length[i]! > lengthAt(x + dx, y + dy) && length[i]! > lengthAt(x - dx, y - dy);
    return !isRidge || length[i]! <= low ? 0 : length[i]! > high ? 1 : 0.5;
  });
  for (let hasGrown = true; hasGrown; ) {
    hasGrown = false;
    for (const [i, mark] of marks.entries()) {
      if (mark !== 0.5) continue;
      const [x, y] = [i % width, Math.floor(i / width)];
      const touches = [-1, 0, 1].some((dy) =>
        [-1, 0, 1].some((dx) => x + dx >= 0 && x + dx < width && marks[(y + dy) * width + x + dx] === 1),
      );
      if (touches) [marks[i], hasGrown] = [1, true];
    }
  }
  return marks.map((mark) => (mark === 1 ? 1 : 0));
}

describe("Canny", () => {
  it("draws a line of one pixel along a step, and nothing where there is none", async () => {
    const image = drawn((x) => (x < 10 ? 0 : x === 10 ? 0.4 : 1));
    const edges = await resultOf("Canny", { image, ...thresholds });
    assert.deepEqual(
      marked(edges).map((at) => at.split(",")[0]),
      Array(24).fill("10"),
    );
    assert.deepEqual(marked(await resultOf("Canny", { image: drawn(() => 0.7), ...thresholds })), []);
  });

  it("keeps a weak edge only where it leads to a strong one", async () => {
    const step = (height: number) => (x: number) => (x < 10 ? 0 : x === 10 ? height * 0.4 : height);
    const weak = drawn(step(0.06));
    assert.deepEqual(marked(await resultOf("Canny", { image: weak, ...thresholds })), []);
    const growing = drawn((x, y) => step(0.06 + 0.008 * y)(x));
    const edges = marked(await resultOf("Canny", { image: growing, ...thresholds }));
    assert.ok(edges.includes("10,0") && edges.includes("10,23"), edges.join(" "));
  });

  for (const seed of [1, 2, 3]) {
    it(`is its published steps on noise, seed ${seed}`, async () => {
      const image = noisy([1, 21, 17, 3], seed);
      const edges = await resultOf("Canny", { image, low_threshold: 0.2, high_threshold: 0.5 });
      const expected = plainCanny(image, 0.2, 0.5);
      assert.deepEqual([...edges.data.filter((_, i) => i % 3 === 0)], expected);
      assert.ok(expected.filter((mark) => mark === 1).length > 10);
    });
  }

  it("treats each picture of a batch alone, in grey or with alpha too", async () => {
    const [a, b] = [noisy([1, 9, 8, 1], 4), noisy([1, 9, 8, 1], 5)];
    const both = Tensor.from([...a.data, ...b.data], [2, 9, 8, 1]);
    const [first, second] = [
      await resultOf("Canny", { image: a, ...thresholds }),
      await resultOf("Canny", { image: b, ...thresholds }),
    ];
    const expected = Tensor.from([...first.data, ...second.data], [2, 9, 8, 3]);
    assertSameBits(await resultOf("Canny", { image: both, ...thresholds }), expected);
    assert.deepEqual([...(await resultOf("Canny", { image: noisy([1, 9, 8, 4]), ...thresholds })).shape], [1, 9, 8, 3]);
  });

  it("refuses a low threshold above the high one", async () => {
    const image = drawn(() => 0);
    const pending = resultOf("Canny", { image, low_threshold: 0.6, high_threshold: 0.5 });
    await refuses(pending, "value.out-of-range", /"low_threshold": expected at most high_threshold, 0.5, received 0.6/);
  });
});
