import assert from "node:assert/strict";
import { createGenerator, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";
import { noisy, resultOf, valueAt } from "../../../helpers/tensor/pictures.js";

describe("Canny", () => {
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
            (Math.exp(-(dx * dx + dy * dy) / 2) / total) *
            grey[mirror(y + dy, height) * width + mirror(x + dx, width)]!;
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
    const lengthAt = (x: number, y: number) =>
      x < 0 || y < 0 || x >= width || y >= height ? 0 : length[y * width + x]!;
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

  it("draws a line of one pixel along a step, and nothing if there is none", async () => {
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

describe("ImageAddNoise", () => {
  it("adds the seed's noise times strength, clamped", async () => {
    const image = noisy([2, 5, 4, 3]);
    const noise = createGenerator({ seed: 7 }).randn(image.shape);
    const expected = image.data.map((value, i) =>
      Math.min(Math.max(Math.fround(value + Math.fround(noise.data[i]! * Math.fround(0.3))), 0), 1),
    );
    const result = await resultOf("ImageAddNoise", { image, seed: 7, strength: 0.3 });
    assertSameBits(result, Tensor.from(expected, image.shape));
  });

  it("changes nothing at strength 0", async () => {
    const image = noisy([1, 5, 4, 4]);
    assertSameBits(await resultOf("ImageAddNoise", { image, seed: 1, strength: 0 }), image);
  });
});

describe("ImageBlend", () => {
  const blend = (image1: Tensor, image2: Tensor) =>
    resultOf("ImageBlend", { image1, image2, blend_factor: 0.3, blend_mode: "screen" });

  it("blends one image with each of a batch", async () => {
    const [one, many] = [noisy([1, 3, 4, 3]), noisy([3, 3, 4, 3], 2)];
    const parts = [0, 1, 2].map((i) => blend(one, Tensor.from(many.data.slice(36 * i, 36 * i + 36), [1, 3, 4, 3])));
    const values = (await Promise.all(parts)).flatMap(({ data }) => [...data]);
    assertSameBits(await blend(one, many), Tensor.from(values, [3, 3, 4, 3]));
  });

  it("names the image whose batch or channels do not fit", async () => {
    const image = noisy([2, 3, 4, 4]);
    await refuses(blend(image, noisy([3, 3, 4, 4])), "tensor.bad-shape", /input "image2": expected a batch of 2 or 1/);
    await refuses(blend(image, noisy([2, 3, 4, 3])), "tensor.bad-shape", /input "image2": .* at least 4 channels/);
  });
});

describe("ImageBlur", () => {
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
      const [channel, x, y] = [
        i % channels,
        Math.floor(i / channels) % width,
        Math.floor(i / channels / width) % height,
      ];
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

describe("ImageFlip", () => {
  const image = Tensor.from([1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60], [1, 2, 3, 2]);

  it("turns an image upside down", async () => {
    const result = await resultOf("ImageFlip", { image, flip_method: "x-axis: vertically" });
    assertSameBits(result, Tensor.from([4, 40, 5, 50, 6, 60, 1, 10, 2, 20, 3, 30], [1, 2, 3, 2]));
  });

  it("exchanges left and right, in every picture", async () => {
    const two = Tensor.from([...image.data, ...image.data], [2, 2, 3, 2]);
    const result = await resultOf("ImageFlip", { image: two, flip_method: "y-axis: horizontally" });
    const row = [3, 30, 2, 20, 1, 10, 6, 60, 5, 50, 4, 40];
    assertSameBits(result, Tensor.from([...row, ...row], [2, 2, 3, 2]));
  });
});

describe("ImageQuantize", () => {
  type Colour = readonly [number, number, number];

  /** Pixels of a picture [1, H, W, 3] in 8 bits. */
  function pixelsOf({ data, shape }: Tensor): Colour[] {
    return Array.from({ length: shape[1]! * shape[2]! }, (_, pixel) => {
      const [red, green, blue] = data.subarray(3 * pixel, 3 * pixel + 3);
      return [Math.round(red! * 255), Math.round(green! * 255), Math.round(blue! * 255)] as const;
    });
  }

  const colours = (image: Tensor) => new Set(pixelsOf(image).map((colour) => colour.join()));
  const distance = (a: Colour, b: Colour) => a.reduce((sum, value, axis) => sum + (value - b[axis]!) ** 2, 0);

  /** A ramp of grey from 0 to 1, w x h. */
  const ramp = (width: number, height: number) =>
    Tensor.from(
      Array.from({ length: 3 * width * height }, (_, i) => (Math.floor(i / 3) % width) / (width - 1)),
      [1, height, width, 3],
    );

  const means = (image: Tensor) => image.data.reduce((a, b) => a + b, 0) / image.size;

  it("changes nothing in an image of few colours", async () => {
    const image = Tensor.from(
      Array.from(noisy([1, 8, 8, 3]).data, (value) => Math.round(value * 2) * (127 / 255)),
      [1, 8, 8, 3],
    );
    const bytes = Tensor.from(
      image.data.map((value) => Math.fround(Math.floor(Math.fround(value * 255)) / 255)),
      image.shape,
    );
    for (const dither of ["none", "floyd-steinberg"])
      assertSameBits(await resultOf("ImageQuantize", { image, colors: 64, dither }), bytes, dither);
  });

  for (const dither of ["none", "floyd-steinberg", "bayer-2", "bayer-4", "bayer-8", "bayer-16"]) {
    for (const colors of [1, 2, 7, 256]) {
      it(`has at most ${colors} colours with dither ${dither}`, async () => {
        const result = await resultOf("ImageQuantize", { image: noisy([1, 40, 37, 3]), colors, dither });
        const used = colours(result).size;
        assert.ok(used <= colors && used > colors * 0.8, String(used));
      });
    }
  }

  it("gives each pixel the nearest colour of the palette without dither", async () => {
    const image = noisy([1, 50, 60, 3], 3);
    const result = await resultOf("ImageQuantize", { image, colors: 40, dither: "none" });
    const palette = [...colours(result)].map((colour) => colour.split(",").map(Number) as unknown as Colour);
    const sources = [...image.data].map((value) => Math.floor(Math.fround(value * 255)));
    for (const [pixel, colour] of pixelsOf(result).entries()) {
      const source = sources.slice(3 * pixel, 3 * pixel + 3) as unknown as Colour;
      const least = Math.min(...palette.map((other) => distance(source, other)));
      assert.equal(distance(source, colour), least, `pixel ${pixel}`);
    }
  });

  it("splits two groups of colours into their means", async () => {
    const image = noisy([1, 30, 30, 3]);
    for (let pixel = 0; pixel < 900; pixel++)
      for (let k = 0; k < 3; k++)
        image.data[3 * pixel + k] = image.data[3 * pixel + k]! * 0.2 + (pixel % 2 ? 0.7 : 0.1);
    const result = await resultOf("ImageQuantize", { image, colors: 2, dither: "none" });
    for (const [pixel, colour] of pixelsOf(result).entries())
      for (const value of colour) assert.ok(Math.abs(value - (pixel % 2 ? 204 : 51)) < 5, String(value));
  });

  it("keeps the mean of a ramp in two colours by dither, and loses it without", async () => {
    const image = ramp(64, 64);
    const error = async (dither: string) => {
      const result = await resultOf("ImageQuantize", { image, colors: 2, dither });
      const [left, right] = [0, 1].map((half) => {
        const columns = (t: Tensor) =>
          means(
            Tensor.from(
              [...t.data].filter((_, i) => Math.floor((Math.floor(i / 3) % 64) / 16) === 1 + half),
              [3072],
            ),
          );
        return Math.abs(columns(result) - columns(image));
      });
      return Math.max(left!, right!);
    };
    assert.ok((await error("none")) > 0.1);
    assert.ok((await error("floyd-steinberg")) < 0.02);
  });

  it("uses the published map of Bayer", async () => {
    const image = Tensor.full([1, 2, 4, 3], 0.5);
    image.data.set([0, 0, 0], 0);
    image.data.set([1, 1, 1], 12);
    // ranks 0 2 / 3 1, and a spread of 512 / 3: values move by -64, 21, 64 and -21
    const result = await resultOf("ImageQuantize", { image, colors: 3, dither: "bayer-2" });
    const greys = pixelsOf(result).map(([red]) => red);
    assert.deepEqual(greys, [0, 127, 0, 127, 255, 127, 127, 127]);
  });

  it("gives equal pictures equal results, each picture its own palette", async () => {
    const [a, b] = [noisy([1, 20, 20, 3], 5), noisy([1, 20, 20, 3], 6)];
    const both = Tensor.from([...a.data, ...b.data], [2, 20, 20, 3]);
    const options = { colors: 9, dither: "floyd-steinberg" };
    const [first, second] = [
      await resultOf("ImageQuantize", { image: a, ...options }),
      await resultOf("ImageQuantize", { image: b, ...options }),
    ];
    const expected = Tensor.from([...first.data, ...second.data], both.shape);
    assertSameBits(await resultOf("ImageQuantize", { image: both, ...options }), expected);
  });
});

describe("ImageRGBToYUV", () => {
  it("returns luma and differences of the primary colours, white and black", async () => {
    const image = Tensor.from([1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0], [1, 1, 5, 3]);
    const { result } = await invokeNode("ImageRGBToYUV", { image });
    const expected = [
      [0.299, 0.587, 0.114, 1, 0],
      [0.5 - 0.299 * 0.564, 0.5 - 0.587 * 0.564, 0.5 + 0.886 * 0.564, 0.5, 0.5],
      [0.5 + 0.701 * 0.713, 0.5 - 0.587 * 0.713, 0.5 - 0.114 * 0.713, 0.5, 0.5],
    ];
    for (const [k, values] of expected.entries()) {
      const grey = values.flatMap((value) => [value, value, value]);
      assertClose(result[k as 0], Tensor.from(grey, [1, 1, 5, 3]), () => 1e-6, "YUV"[k]);
    }
  });
});

describe("ImageRotate", () => {
  const image = Tensor.from([1, 2, 3, 4, 5, 6], [1, 2, 3, 1]);
  const turns: [string, number[], number[]][] = [
    ["none", [1, 2, 3, 4, 5, 6], [1, 2, 3, 1]],
    ["90 degrees", [4, 1, 5, 2, 6, 3], [1, 3, 2, 1]],
    ["180 degrees", [6, 5, 4, 3, 2, 1], [1, 2, 3, 1]],
    ["270 degrees", [3, 6, 2, 5, 1, 4], [1, 3, 2, 1]],
  ];
  for (const [rotation, values, shape] of turns) {
    it(`turns clockwise by ${rotation}`, async () => {
      assertSameBits(await resultOf("ImageRotate", { image, rotation }), Tensor.from(values, shape));
    });
  }

  it("is back where it was after four quarters, batch and colours too", async () => {
    const batch = noisy([2, 3, 5, 4]);
    let result = batch;
    for (let turn = 0; turn < 4; turn++)
      result = await resultOf("ImageRotate", { image: result, rotation: "90 degrees" });
    assertSameBits(result, batch);
  });
});

describe("ImageSharpen", () => {
  it("adds ten times alpha of what the blur takes away, and clamps", async () => {
    const image = noisy([2, 9, 11, 3]);
    const options = { sigma: 0.7 };
    const blurred = await resultOf("ImageBlur", { image, blur_radius: 3, ...options });
    const expected = image.data.map((value, i) => Math.min(Math.max(value + 2 * (value - blurred.data[i]!), 0), 1));
    const result = await resultOf("ImageSharpen", { image, sharpen_radius: 3, alpha: 0.2, ...options });
    assertClose(result, Tensor.from(expected, image.shape), () => 2e-6);
  });

  it("changes nothing if alpha is 0", async () => {
    const image = noisy([1, 4, 4, 3]);
    assertClose(await resultOf("ImageSharpen", { image, sharpen_radius: 1, sigma: 1, alpha: 0 }), image, () => 0);
  });
});

describe("ImageYUVToRGB", () => {
  it("undoes ImageRGBToYUV but for the rounded factors", async () => {
    const image = noisy([2, 4, 5, 3]);
    const [Y, U, V] = (await invokeNode("ImageRGBToYUV", { image })).result as [Tensor, Tensor, Tensor];
    assertClose(await resultOf("ImageYUVToRGB", { Y, U, V }), image, () => 2e-3);
  });

  it("takes the mean of each image's channels", async () => {
    const grey = (...values: number[]) => Tensor.from(values, [1, 1, 1, values.length]);
    const result = await resultOf("ImageYUVToRGB", {
      Y: grey(0.2, 0.4, 0.6),
      U: grey(0.7),
      V: grey(0.3, 0.5, 0.5, 0.3),
    });
    assertClose(result, grey(0.4 - 0.1403, 0.4 + 0.0714 - 0.0688, 0.4 + 0.3546), () => 1e-6);
  });

  it("refuses images of different sizes", async () => {
    const [Y, U] = [noisy([1, 2, 2, 3]), noisy([1, 2, 3, 3])];
    await refuses(
      resultOf("ImageYUVToRGB", { Y, U, V: Y }),
      "tensor.bad-shape",
      /input "U": expected an image of shape \[1, 2, 2, C\]/,
    );
  });
});

describe("Morphology", () => {
  /** The greatest or least value in a window, by looking at all of it. */
  function extreme(image: Tensor, side: number, pick: (...values: number[]) => number): Tensor {
    const [, height, width, channels] = image.shape as [number, number, number, number];
    const out = Tensor.zeros(image.shape);
    const before = Math.floor(side / 2);
    for (let i = 0; i < out.size; i++) {
      const [channel, x, y] = [
        i % channels,
        Math.floor(i / channels) % width,
        Math.floor(i / channels / width) % height,
      ];
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
