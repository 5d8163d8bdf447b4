import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { noisePicture, preparedPicture, tiled } from "#src/nodes/ipadapter/pictures.js";
import { refuses } from "../../../helpers/errors.js";
import { adapterLayers, adapterPicture, sampled } from "../../../helpers/models/golden-adapters.js";

const { prep, noise, tiles, tensor } = adapterLayers();

const errorsOf = (actual: readonly number[], expected: Tensor): number[] => {
  assert.equal(actual.length, expected.size);
  return actual.map((value, i) => Math.abs(value - expected.data[i]!));
};

describe("preparedPicture", () => {
  for (const { image, interpolation, crop_position, sharpening, out, step } of prep)
    it(`${image}, ${interpolation}, ${crop_position}, sharpened ${sharpening}, as the reference`, async () => {
      const picture = preparedPicture(await adapterPicture(image), interpolation, crop_position, sharpening);
      const errors = errorsOf(sampled(picture, 1, step), tensor(out));
      assert.ok(Math.max(...errors) <= 1 / 255 + 1e-5, `${Math.max(...errors)}`);
      assert.ok(errors.filter((error) => error > 1e-5).length <= 0.01 * errors.length);
    });

  it("pads an odd difference of sides, below and at the right the more", () => {
    const { data } = preparedPicture(Tensor.full([1, 3, 4, 3], 1), "NEAREST", "pad", 0);
    const row = (y: number) => data[y * 224 * 3 + 300]!;
    assert.deepEqual([row(0), row(111), row(223)], [1, 1, 0]);
  });

  it("refuses a picture without pixels", async () => {
    const prepare = () => preparedPicture(Tensor.zeros([1, 0, 4, 3]), "BOX", "center", 0);
    await refuses(prepare, "value.invalid", /at least 1 x 1 pixels/);
  });
});

describe("noisePicture", () => {
  for (const { type, strength, blur, out, step } of noise)
    it(`${type} ${strength}, blurred ${blur}, as the reference`, () => {
      const errors = errorsOf(sampled(noisePicture(type, strength, blur), 1, step), tensor(out));
      assert.ok(Math.max(...errors) <= 1e-6, `${Math.max(...errors)}`);
    });
});

describe("tiled", () => {
  for (const each of tiles)
    it(`cuts ${each.image} as the reference`, async () => {
      const { tiles: pictures, masks } = tiled(await adapterPicture(each.image));
      assert.deepEqual([[...pictures.shape], [...masks.shape]], [each.tiles, each.masks]);
      const errors = errorsOf(sampled(pictures, 1, 16), tensor(each.tile_sub));
      assert.ok(Math.max(...errors) <= 1e-6);
      const [count, rows, columns] = each.masks;
      const boxes = each.mask_boxes as [number, number, number, number][];
      for (let i = 0; i < count * rows * columns; i++) {
        const [tile, row, column] = [Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns];
        const [top, bottom, left, right] = boxes[tile]!;
        const isInside = row >= top && row < bottom && column >= left && column < right;
        if (masks.data[i] !== (isInside ? 1 : 0)) assert.fail(`mask ${tile}, ${row}, ${column}`);
      }
    });
});
