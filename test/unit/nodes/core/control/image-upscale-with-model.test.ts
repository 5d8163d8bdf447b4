import assert from "node:assert/strict";
import { invokeNode, Tensor } from "latentkit";
import { refuses, rejectsAs } from "../../../../helpers/errors.js";
import { enlarged } from "../../../../helpers/graph/file-host.js";
import { assertClose, assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("ImageUpscaleWithModel", () => {
  const picture = (height: number, width: number, batch = 1, channels = 3): Tensor => {
    const values = new Float32Array(batch * height * width * channels);
    for (let i = 0; i < values.length; i++) values[i] = ((i * 7919) % 1009) / 1008;
    return Tensor.from(values, [batch, height, width, channels]);
  };
  const upscale = async (image: Tensor, others: object = {}, options?: object) => {
    const sizes: string[] = [];
    const model = {
      scale: 2,
      upscale: async (tile: Tensor) => {
        sizes.push(tile.shape.join(" "));
        return enlarged(tile, 2);
      },
      ...others,
    };
    const { result } = await invokeNode("ImageUpscaleWithModel", { upscale_model: model, image }, options);
    return { image: result[0], sizes };
  };

  it("gives a small picture to the model as a whole, each of a batch alone", async () => {
    const small = picture(20, 512, 2, 4);
    const { image, sizes } = await upscale(small);
    assert.deepEqual(sizes, ["1 20 512 3", "1 20 512 3"]);
    const colours = Tensor.from(
      small.data.filter((_, i) => i % 4 !== 3),
      [2, 20, 512, 3],
    );
    assertSameBits(image, enlarged(colours, 2));
  });

  it("shows no seams between tiles of 512 that share 32 pixels", async () => {
    const large = picture(600, 1100);
    const { image, sizes } = await upscale(large);
    assert.equal(sizes.length, 2 * 3);
    assert.deepEqual(new Set(sizes), new Set(["1 512 512 3"]));
    assertClose(image, enlarged(large, 2), () => 2e-7);
  });

  it("fades from tile to tile", async () => {
    let tile = 0;
    const constant = async (part: Tensor) => Tensor.full(enlarged(part, 2).shape, tile++);
    const { image } = await upscale(picture(8, 992), { upscale: constant });
    const row = [...image.data.subarray(0, 1984 * 3)].filter((_, i) => i % 3 === 0);
    assert.deepEqual([row[959], row[1024]], [0, 1]);
    for (let x = 960; x < 1024; x++) assert.ok(Math.abs(row[x]! - (x - 959) / 65) < 1e-6, `${x}: ${row[x]}`);
  });

  it("limits values to 0…1", async () => {
    let value = 0;
    const odd = [Number.NaN, -1, 2, Number.POSITIVE_INFINITY];
    const { image } = await upscale(picture(1, 1, 4), {
      scale: 1,
      upscale: async () => Tensor.full([1, 1, 1, 3], odd[value++]!),
    });
    assert.deepEqual([...image.data], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
  });

  it("refuses models that return other sizes, and pictures beyond all bounds", async () => {
    const wrong = { upscale: async (tile: Tensor) => tile };
    await refuses(upscale(picture(4, 4), wrong), "value.invalid", /upscale_model.*\[1, 8, 8, 3\]/);
    await refuses(upscale(picture(300, 300), { scale: 64 }), "tensor.too-large");
  });

  it("stops between tiles", async () => {
    const controller = new AbortController();
    let tiles = 0;
    const stopping = async (tile: Tensor) => {
      tiles++;
      controller.abort();
      return enlarged(tile, 2);
    };
    const { signal } = controller;
    await rejectsAs(signal, upscale(picture(4, 600), { upscale: stopping }, { signal }));
    assert.equal(tiles, 1);
  });
});
