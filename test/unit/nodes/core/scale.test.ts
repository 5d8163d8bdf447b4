import assert from "node:assert/strict";
import { invokeNode, LatentkitError, Tensor } from "latentkit";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

describe("ImageScaleToMaxDimension", () => {
  async function sidesOf(height: number, width: number, largest_size: number): Promise<number[]> {
    const image = Tensor.full([2, height, width, 3], 0.5);
    const inputs = { image, upscale_method: "bilinear", largest_size };
    const { result } = await invokeNode("ImageScaleToMaxDimension", inputs);
    return [...(result[0] as Tensor).shape];
  }

  it("gives the longer side the size and keeps the proportions", async () => {
    assert.deepEqual(await sidesOf(30, 40, 64), [2, 48, 64, 3]);
    assert.deepEqual(await sidesOf(40, 30, 64), [2, 64, 48, 3]);
    assert.deepEqual(await sidesOf(9, 9, 64), [2, 64, 64, 3]);
  });

  it("rounds the other side half to even", async () => {
    assert.deepEqual(await sidesOf(4, 2, 5), [2, 5, 2, 3]);
  });

  it("refuses a size that leaves a side of 0", async () => {
    for (const [height, width, size] of [
      [8, 8, 0],
      [2, 90, 10],
    ] as const) {
      await assert.rejects(sidesOf(height, width, size), (error) => {
        assert.ok(error instanceof LatentkitError && error.code === "value.out-of-range");
        assert.match(
          error.message,
          /input "largest_size": expected a size at which both sides of .* keep at least one pixel/,
        );
        return true;
      });
    }
  });
});

describe("ImageScaleToTotalPixels", () => {
  const image = Tensor.full([1, 30, 40, 3], 0.5);

  async function sidesOf(inputs: { megapixels: number; resolution_steps?: number }): Promise<number[]> {
    const scaled = await invokeNode("ImageScaleToTotalPixels", { image, upscale_method: "area", ...inputs });
    return [...(scaled.result[0] as Tensor).shape];
  }

  it("keeps the proportions at the number of pixels", async () => {
    assert.deepEqual(await sidesOf({ megapixels: 0.05 }), [1, 198, 264, 3]);
  });

  it("rounds both sides to multiples of the steps, the nearest ones", async () => {
    assert.deepEqual(await sidesOf({ megapixels: 0.05, resolution_steps: 64 }), [1, 192, 256, 3]);
  });

  it("refuses steps that are too large for the number of pixels", async () => {
    const pending = sidesOf({ megapixels: 0.01, resolution_steps: 256 });
    await assert.rejects(pending, (error) => {
      assert.ok(error instanceof LatentkitError && error.code === "value.out-of-range");
      assert.match(error.message, /input "megapixels": expected enough pixels .* at least 256, received 0.01/);
      return true;
    });
  });
});

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

describe("ImageStitch", () => {
  const stitch = async (image1: Tensor, image2: Tensor | undefined, more: object = {}) => {
    const own = { direction: "right", match_image_size: false, spacing_width: 0, spacing_color: "white", ...more };
    const inputs = image2 === undefined ? { image1, ...own } : { image1, image2, ...own };
    return (await invokeNode("ImageStitch", inputs)).result[0] as Tensor;
  };
  /** First channel of the first image, row by row. */
  const rows = ({ data, shape: [, height, width, channels] }: Tensor) =>
    Array.from({ length: height! }, (_, y) =>
      Array.from({ length: width! }, (_, x) => data[(y * width! + x) * channels!]!),
    );
  const [dark, light] = [Tensor.full([1, 1, 2, 3], 0.25), Tensor.full([1, 1, 2, 3], 0.75)];

  it("puts the second image to each side", async () => {
    assert.deepEqual(rows(await stitch(dark, light)), [[0.25, 0.25, 0.75, 0.75]]);
    assert.deepEqual(rows(await stitch(dark, light, { direction: "left" })), [[0.75, 0.75, 0.25, 0.25]]);
    const [down, up] = [
      await stitch(dark, light, { direction: "down" }),
      await stitch(dark, light, { direction: "up" }),
    ];
    assert.deepEqual(rows(down), [
      [0.25, 0.25],
      [0.75, 0.75],
    ]);
    assert.deepEqual(rows(up), rows(down).reverse());
    assert.equal(await stitch(dark, undefined), dark);
  });

  it("gives the lower image black margins, or resizes the second one", async () => {
    const tall = Tensor.full([1, 4, 2, 3], 0.75);
    const margins = await stitch(dark, tall);
    assert.deepEqual(
      rows(margins).map(([first]) => first),
      [0, 0.25, 0, 0],
    );
    const matched = await stitch(tall, dark, { match_image_size: true });
    assert.deepEqual(matched.shape, [1, 4, 10, 3]);
    const above = await stitch(tall, Tensor.full([1, 3, 6, 3], 0.5), { match_image_size: true, direction: "up" });
    assert.deepEqual(above.shape, [1, 5, 2, 3]);
  });

  it("leaves a gap of an even width in a colour", async () => {
    const stitched = await stitch(dark, light, { spacing_width: 1, spacing_color: "red" });
    assert.deepEqual([...stitched.data.slice(6, 12)], [1, 0, 0, 1, 0, 0]);
    assert.deepEqual(stitched.shape, [1, 1, 6, 3]);
  });

  it("repeats the last image of the smaller batch, and makes an image without alpha opaque", async () => {
    const two = Tensor.from([0, 0, 0, 0.5, 1, 1, 1, 0.5], [2, 1, 1, 4]);
    const stitched = await stitch(two, Tensor.full([1, 1, 1, 3], 0.25));
    assertSameBits(
      stitched,
      Tensor.from([0, 0, 0, 0.5, 0.25, 0.25, 0.25, 1, 1, 1, 1, 0.5, 0.25, 0.25, 0.25, 1], [2, 1, 2, 4]),
    );
  });
});
