import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { resampled, resampledBytes } from "#src/tensor/image/resample.js";

const FILTERS = ["box", "bilinear", "hamming", "bicubic"] as const;
const noise = Tensor.from(
  randn([1, 9, 7, 3], { seed: 1 }).data.map((value) => Math.min(1, Math.abs(value))),
  [1, 9, 7, 3],
);

describe("resampled", () => {
  it("keeps an even picture, larger, smaller and in part", () => {
    const even = Tensor.full([2, 20, 30, 3], 0.25);
    for (const filter of FILTERS)
      for (const size of [
        { height: 7, width: 11 },
        { height: 40, width: 31 },
        { height: 40, width: 31, part: { top: 3, left: 5, height: 4, width: 2 } },
      ]) {
        const { shape, data } = resampled(even, size, filter);
        const { height, width } = size.part ?? size;
        assert.deepEqual([...shape], [2, height, width, 3]);
        assert.ok(data.every((value) => Math.abs(value - 0.25) < 1e-6));
      }
  });

  it("makes the part that it would have cut from the whole", () => {
    const whole = resampled(noise, { height: 5, width: 12 }, "bicubic");
    const part = { top: 1, left: 4, height: 3, width: 6 };
    const { data } = resampled(noise, { height: 5, width: 12, part }, "bicubic");
    const at = (i: number) => {
      const [row, column] = [Math.floor(i / 18), Math.floor(i / 3) % 6];
      return whole.data[((row + 1) * 12 + column + 4) * 3 + (i % 3)];
    };
    assert.deepEqual(
      [...data],
      Array.from(data, (_, i) => at(i)),
    );
  });

  it("averages the pixels that it takes together", () => {
    const picture = Tensor.from([0, 1, 0.5, 0.25], [1, 2, 2, 1]);
    assert.deepEqual([...resampled(picture, { height: 1, width: 1 }, "box").data], [0.4375]);
  });
});

describe("resampledBytes", () => {
  const levels = ({ data }: Tensor): number[] => Array.from(data, (value) => Math.round(255 * value));

  it("keeps the bytes of a picture of the same size", () => {
    const bytes = Array.from(noise.data, (value) => Math.floor(value * 255));
    for (const filter of [...FILTERS, "nearest"] as const)
      assert.deepEqual(levels(resampledBytes(noise, 9, 7, filter)), bytes);
  });

  it("takes the pixel below each middle", () => {
    const row = Tensor.from([0, 0.2, 0.4, 0.6, 0.8], [1, 1, 5, 1]);
    assert.deepEqual(levels(resampledBytes(row, 1, 2, "nearest")), [51, 153]);
  });

  it("clips what a filter overshoots", () => {
    const step = Tensor.from([0, 0, 1, 1], [1, 1, 4, 1]);
    const bytes = levels(resampledBytes(step, 1, 12, "bicubic"));
    assert.deepEqual(
      [bytes.slice(0, 4), bytes.slice(-4)],
      [
        [0, 0, 0, 0],
        [255, 255, 255, 255],
      ],
    );
    assert.ok(new Set(bytes).size > 3);
  });
});
