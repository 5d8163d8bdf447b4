import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";
import { noisy, resultOf } from "../../../../helpers/tensor/pictures.js";

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

describe("ImageQuantize", () => {
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
