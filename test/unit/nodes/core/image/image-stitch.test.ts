import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

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
