import assert from "node:assert/strict";
import { LatentkitError, randn, Tensor } from "latentkit";
import { resizeBilinear } from "#src/tensor/ops.js";
import { cropped } from "#src/tensor/parts.js";
import { IMAGE_METHODS, LATENT_METHODS, resizeAntialiased, resizeImage, resizeLatent } from "#src/tensor/resize.js";
import { roundHalfEven } from "#src/tensor/rounding.js";
import { fakeGpu, onFakeGpu } from "../../helpers/process/fake-gpu.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

/** Values that rise with each element. */
const rising = (shape: readonly number[]): Tensor => {
  const tensor = Tensor.zeros(shape);
  for (let i = 0; i < tensor.size; i++) tensor.data[i] = i;
  return tensor;
};

const refuses = (call: () => unknown, code: string, message: RegExp): void =>
  assert.throws(call, (error) => error instanceof LatentkitError && error.code === code && message.test(error.message));

describe("resizeLatent", () => {
  const x = rising([1, 2, 2, 4]);
  const size = { height: 1, width: 2 };

  it("picks the cells whose middles are nearest", () => {
    const picked = resizeLatent(x, { method: "nearest-exact", ...size });
    assertSameBits(picked, Tensor.from([5, 7, 13, 15], [1, 2, 1, 2]));
  });

  it("averages the cells that each new one covers", () => {
    assertSameBits(resizeLatent(x, { method: "area", ...size }), Tensor.from([2.5, 4.5, 10.5, 12.5], [1, 2, 1, 2]));
  });

  it("is resizeBilinear for bilinear", () => {
    assertSameBits(resizeLatent(x, { method: "bilinear", height: 5, width: 3 }), resizeBilinear(x, 5, 3));
  });

  it("overshoots at an edge for bicubic", () => {
    const edge = Tensor.from([0, 0, 1, 1], [1, 1, 1, 4]);
    const { data } = resizeLatent(edge, { method: "bicubic", height: 1, width: 16 });
    assert.ok(data.some((value) => value < 0) && data.some((value) => value > 1));
    assert.equal(data[0], 0);
  });

  it("turns the vectors of the channels for bislerp, their length unchanged", () => {
    const right = Tensor.from([1, 0, 0, 1], [1, 2, 1, 2]);
    const { data } = resizeLatent(right, { method: "bislerp", height: 1, width: 4 });
    for (let i = 0; i < 4; i++) assert.ok(Math.abs(Math.hypot(data[i]!, data[4 + i]!) - 1) < 1e-6);
    assert.ok(Math.abs(data[1]! - Math.cos(Math.PI / 8)) < 1e-6);
  });

  it("resizes each frame between the channels and the sides as a latent of its own", () => {
    const frames = rising([2, 3, 2, 4, 5]);
    for (const method of LATENT_METHODS) {
      const all = resizeLatent(frames, { method, height: 3, width: 7 });
      assert.deepEqual([...all.shape], [2, 3, 2, 3, 7]);
      for (let frame = 0; frame < 2; frame++) {
        const alone = resizeLatent(frameOf(frames, frame), { method, height: 3, width: 7 });
        assertSameBits(frameOf(all, frame), alone, method);
      }
    }
  });

  it("writes into `out` if there is one", () => {
    const out = Tensor.zeros([1, 2, 1, 2]);
    assert.equal(resizeLatent(x, { method: "bicubic", ...size }, out), out);
    assert.notEqual(out.data[0], 0);
    refuses(() => resizeLatent(x, { method: "area", ...size }, x), "tensor.bad-shape", /expected a tensor of shape/);
  });

  it("refuses sides of 0, too few axes and results that are too large", () => {
    const options = { method: "area", height: 0, width: 2 } as const;
    refuses(() => resizeLatent(x, options), "tensor.bad-shape", /at least 1, received 4 x 2 to 2 x 0/);
    refuses(
      () => resizeLatent(Tensor.zeros([1, 2, 0, 4]), { method: "area", ...size }),
      "tensor.bad-shape",
      /at least 1 x 1, received 4 x 0/,
    );
    refuses(() => resizeLatent(rising([2, 3, 4]), { method: "area", ...size }), "tensor.bad-shape", /\[B, C, H, W\]/);
    for (const method of LATENT_METHODS)
      refuses(() => resizeLatent(x, { method, height: 2 ** 20, width: 2 ** 20 }), "tensor.too-large", /at most/);
  });

  it("refuses a bislerp whose first pass would be too large", () => {
    const tall = Tensor.zeros([1, 1, 2 ** 16, 1]);
    refuses(() => resizeLatent(tall, { method: "bislerp", height: 1, width: 2 ** 15 }), "tensor.too-large", /65536/);
  });

  /** Frame `index` of [B, C, frames, H, W] as [B, C, H, W]. */
  function frameOf(tensor: Tensor, index: number): Tensor {
    const [batch, channels, frames, height, width] = tensor.shape as [number, number, number, number, number];
    const plane = height * width;
    const planes = Array.from({ length: batch * channels }, (_, i) => {
      const from = (i * frames + index) * plane;
      return [...tensor.data.subarray(from, from + plane)];
    });
    return Tensor.from(planes.flat(), [batch, channels, height, width]);
  }
});

describe("resizeImage", () => {
  it("gives an image the values that its planes get", () => {
    const planes = rising([1, 3, 6, 8]);
    const pixels = Tensor.zeros([1, 6, 8, 3]);
    for (let i = 0; i < planes.size; i++) pixels.data[(i % 48) * 3 + Math.floor(i / 48)] = planes.data[i]!;
    for (const method of IMAGE_METHODS.filter((name) => name !== "lanczos")) {
      const image = resizeImage(pixels, { method, height: 9, width: 4 });
      const latent = resizeLatent(planes, { method, height: 9, width: 4 });
      for (let i = 0; i < latent.size; i++)
        assert.equal(image.data[(i % 36) * 3 + Math.floor(i / 36)], latent.data[i], method);
    }
  });

  it("cuts the middle of the same proportions out, of halves the even one", () => {
    const image = rising([1, 4, 9, 1]);
    // 9 x 4 to 4 x 4: 2.5 columns at each side would go, 2 do
    const middle = resizeImage(image, { method: "area", height: 4, width: 4, crop: "center" });
    assertSameBits(middle, resizeImage(columns(image, 2, 7), { method: "area", height: 4, width: 4 }));
    const whole = resizeImage(image, { method: "area", height: 8, width: 18, crop: "center" });
    assertSameBits(whole, resizeImage(image, { method: "area", height: 8, width: 18 }));
  });

  it("cuts rows off a picture that is too high", () => {
    const image = rising([1, 6, 2, 1]);
    const middle = resizeImage(image, { method: "nearest-exact", height: 2, width: 2, crop: "center" });
    assertSameBits(middle, Tensor.from([4, 5, 6, 7], [1, 2, 2, 1]));
  });

  it("refuses a crop that leaves nothing", () => {
    const options = { method: "area", height: 8192, width: 1, crop: "center" } as const;
    refuses(
      () => resizeImage(rising([1, 8, 8, 3]), options),
      "tensor.bad-shape",
      /resizeImage, crop to 1 x 8192: nothing of the 8 x 8 input would be left/,
    );
    refuses(() => resizeImage(Tensor.zeros([0, 8, 8, 3]), options), "tensor.bad-shape", /nothing of the 8 x 8 input/);
  });

  it("multiplies alpha in for lanczos: what is transparent lends no colour", () => {
    const image = Tensor.from([1, 0, 0, 1, 0, 1, 0, 0], [1, 1, 2, 4]);
    const { data } = resizeImage(image, { method: "lanczos", height: 1, width: 1 });
    assert.deepEqual(
      [...data].map((value) => Math.round(value * 255)),
      [255, 0, 0, 128],
    );
  });

  it("rounds to bytes for lanczos, also if the size stays", () => {
    const image = Tensor.from([0.5, 1.5, -1, Number.NaN, 0.999, 0.001], [1, 1, 2, 3]);
    const { data } = resizeImage(image, { method: "lanczos", height: 1, width: 2 });
    assert.deepEqual(
      [...data],
      [127, 255, 0, 0, 254, 0].map((byte) => Math.fround(byte / 255)),
    );
  });

  /** Greys as a row of pixels of three channels. */
  const rowOf = (...greys: number[]): Tensor =>
    Tensor.from(
      greys.flatMap((grey) => [grey, grey, grey]),
      [1, 1, greys.length, 3],
    );
  /** Bytes of the first channel. */
  const greysOf = ({ data }: Tensor): number[] =>
    [...data].filter((_, i) => i % 3 === 0).map((value) => Math.round(255 * value));

  it("takes the pixel below each middle for pillow-nearest, and its alpha as it is", () => {
    const size = { method: "pillow-nearest", height: 1, width: 2 } as const;
    assert.deepEqual(greysOf(resizeImage(rowOf(0, 0.2, 0.4, 0.6, 0.8), size)), [51, 153]);
    const clear = Tensor.from([1, 0.2, 0, 0, 0, 1, 0, 1, 0.2, 0, 0, 0], [1, 1, 3, 4]);
    const { data } = resizeImage(clear, size);
    assert.deepEqual(
      [...data],
      [1, 51, 0, 0, 51, 0, 0, 0].map((byte, i) => (i === 0 ? 1 : Math.fround(byte / 255))),
    );
  });

  it("adds steps up for pillow-nearest, so that a middle between two pixels may fall short, as in Pillow", () => {
    const greys = [0, 51, 102, 153];
    const enlarged = resizeImage(rowOf(...greys.map((grey) => grey / 255)), {
      method: "pillow-nearest",
      height: 1,
      width: 6,
    });
    assert.deepEqual(greysOf(enlarged), [0, 51, 51, 102, 102, 153]);
  });

  it("averages what each pixel covers for pillow-box", () => {
    const halves = resizeImage(rowOf(0, 0.2, 0.4, 0.8), { method: "pillow-box", height: 1, width: 2 });
    assert.deepEqual(greysOf(halves), [26, 153]);
  });

  it("weighs by distance for pillow-bilinear and pillow-hamming, which is sharper", () => {
    const levels = (["pillow-bilinear", "pillow-hamming"] as const).map((method) =>
      greysOf(resizeImage(rowOf(0, 1), { method, height: 1, width: 4 })),
    );
    assert.deepEqual(levels, [
      [0, 64, 191, 255],
      [0, 19, 236, 255],
    ]);
  });

  it("clips what pillow-bicubic overshoots", () => {
    const bytes = greysOf(resizeImage(rowOf(0, 0, 1, 1), { method: "pillow-bicubic", height: 1, width: 12 }));
    assert.deepEqual([...bytes.slice(0, 4), ...bytes.slice(-4)], [0, 0, 0, 0, 255, 255, 255, 255]);
    assert.ok(new Set(bytes).size > 3);
  });

  it("refuses Pillow's methods of one channel and of five", () => {
    for (const method of ["lanczos", "pillow-box"] as const)
      for (const channels of [1, 5]) {
        const resize = () => resizeImage(rising([1, 2, 2, channels]), { method, height: 3, width: 3 });
        refuses(resize, "tensor.bad-shape", /2 to 4 channels/);
      }
  });

  it("refuses a lanczos whose first pass would be too large", () => {
    const tall = Tensor.zeros([1, 2 ** 16, 1, 3]);
    refuses(() => resizeImage(tall, { method: "lanczos", height: 1, width: 2 ** 14 }), "tensor.too-large", /65536/);
  });

  /** Columns `from` up to `to` of an image of one channel. */
  function columns(image: Tensor, from: number, to: number): Tensor {
    const [, height, width] = image.shape as [number, number, number, number];
    const values = [...image.data].filter((_, i) => i % width >= from && i % width < to);
    return Tensor.from(values, [1, height, to - from, 1]);
  }
});

describe("resizeAntialiased", () => {
  const noise = randn([1, 9, 7, 3], { seed: 1 });

  it("keeps an even picture, larger, smaller and in part", () => {
    const even = Tensor.full([2, 20, 30, 3], 0.25);
    for (const size of [
      { height: 7, width: 11 },
      { height: 40, width: 31 },
      { height: 40, width: 31, part: { top: 3, left: 5, height: 4, width: 2 } },
    ]) {
      const { shape, data } = resizeAntialiased(even, size);
      const { height, width } = size.part ?? size;
      assert.deepEqual([...shape], [2, height, width, 3]);
      assert.ok(data.every((value) => Math.abs(value - 0.25) < 1e-6));
    }
  });

  it("makes the part that it would have cut from the whole", () => {
    const whole = resizeAntialiased(noise, { height: 5, width: 12 });
    const part = { top: 1, left: 4, height: 3, width: 6 };
    assertSameBits(resizeAntialiased(noise, { height: 5, width: 12, part }), cropped(whole, 1, part));
  });

  it("takes all pixels of a smaller picture together, and overshoots at an edge", () => {
    const edge = Tensor.from([0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 8, 1]);
    const { data } = resizeAntialiased(edge, { height: 1, width: 4 });
    assert.ok(data[0]! < 0 && data[3]! > 1);
    assert.ok(Math.abs(data[1]! + data[2]! - 1) < 1e-6);
  });

  it("refuses sides of 0, and what is too large", () => {
    const size = { height: 0, width: 2 };
    refuses(() => resizeAntialiased(noise, size), "tensor.bad-shape", /resizeAntialiased.*at least 1/);
    const tall = Tensor.zeros([1, 2 ** 16, 1, 3]);
    refuses(() => resizeAntialiased(tall, { height: 1, width: 2 ** 14 }), "tensor.too-large", /65536/);
    const part = { top: 0, left: 2, height: 1, width: 1 };
    assert.throws(() => resizeAntialiased(noise, { height: 1, width: 2, part }), RangeError);
  });
});

describe("resizes on a device", () => {
  it("have the CPU's bits, whether the device has the method or not", async () => {
    const program = `
      const { resizeImage, resizeLatent, IMAGE_METHODS, LATENT_METHODS } = await import("#src/tensor/resize.js");
      const all = () => {
        const latent = ops.scale(randn([1, 4, 9, 7], { seed: 1n, source: "GPU" }), 2);
        const image = ops.planesToImage(randn([1, 3, 9, 7], { seed: 2n, source: "GPU" }));
        const size = { height: 13, width: 5, crop: "center" };
        return [
          ...LATENT_METHODS.map((method) => bits(resizeLatent(latent, { method, ...size }))),
          ...IMAGE_METHODS.map((method) => bits(resizeImage(image, { method, ...size }))),
        ];
      };
      const [here, there] = [withDevice("cpu", all), all()];
      send([here.length, JSON.stringify(here) === JSON.stringify(there), warnings, counted("misuses")]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu()), [[10, true, [], [0]]]);
  });
});

describe("roundHalfEven", () => {
  it("rounds to the nearest whole number, halves to the even one", () => {
    assert.deepEqual([0.5, 1.5, 2.5, -1.5, 2.4999, 2.5001, 7].map(roundHalfEven), [0, 2, 2, -2, 2, 3, 7]);
  });
});
