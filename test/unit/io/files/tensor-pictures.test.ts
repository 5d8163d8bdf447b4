import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng, encodePng, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { root } from "../../../helpers/folders.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";
import { noisy } from "../../../helpers/tensor/pictures.js";

const inputDir = join(root, "test/graphs/input");

describe("Tensor.toPng", () => {
  it("encodes images and masks of every shape as encodePng does", async () => {
    const image = noisy([5, 7, 3]);
    const expected = await encodePng(image);
    assert.deepEqual(await image.toPng(), expected);
    assert.deepEqual(await image.reshape([1, 5, 7, 3]).toPng(), expected);
    assert.deepEqual(await image.reshape([1, 5, 7, 3]).toPng({ index: 0 }), expected);
    const mask = noisy([5, 7]);
    const grey = await encodePng(mask);
    assert.deepEqual(await mask.toPng(), grey);
    assert.deepEqual(await mask.reshape([1, 5, 7]).toPng(), grey);
    assert.deepEqual(await mask.reshape([5, 7, 1]).toPng(), grey);
    const { channels, data } = await decodePng(grey);
    assert.deepEqual([channels, data[3]], [1, Math.trunc(Math.fround(mask.data[3]! * 255))]);
  });

  it("encodes the picture of a batch that is named", async () => {
    for (const [shape, one] of [
      [
        [3, 5, 7, 4],
        [5, 7, 4],
      ],
      [
        [3, 5, 7],
        [5, 7],
      ],
    ] as const) {
      const batch = noisy(shape);
      const size = batch.size / 3;
      for (const index of [0, 1, 2]) {
        const part = Tensor.from(batch.data.slice(index * size, (index + 1) * size), one);
        assert.deepEqual(await batch.toPng({ index }), await encodePng(part));
      }
      await refuses(
        batch.toPng(),
        "value.out-of-range",
        /^toPng: expected the index of one picture, 0 to 2, received none\.$/,
      );
      await refuses(batch.toPng({ index: 3 }), "value.out-of-range", /^toPng index: expected 0 to 2, received 3\.$/);
    }
    await refuses(noisy([5, 7]).toPng({ index: 1 }), "value.out-of-range", /expected 0 to 0/);
  });

  it("takes level and texts, and refuses anything else", async () => {
    const bytes = await noisy([4, 4, 3]).toPng({ level: 9, text: { a: "b" } });
    assert.deepEqual((await decodePng(bytes)).text, { a: "b" });
    await refuses(noisy([4, 4]).toPng({ levl: 1 } as never), "usage.invalid", /"levl"\. Did you mean level\?/);
    await refuses(noisy([4, 4]).toPng({ bitDepth: 12 as never }), "usage.invalid", /bitDepth: expected 8 or 16/);
    await refuses(noisy([2, 3, 4, 5, 6]).toPng(), "tensor.bad-shape", /\[2, 3, 4, 5, 6\]/);
    await refuses(noisy([5, 7, 9, 8]).toPng({ index: 1 }), "tensor.bad-shape", /\[7, 9, 8\]/);
    const pixel = { data: new Uint8Array(3), width: 1, height: 1, channels: 3 };
    await refuses(encodePng(pixel, { bitDepth: 16 }), "value.invalid", /a Tensor for 16 bits/);
  });

  it("encodes 16 bits, which come back to the last one", async () => {
    const samples = Array.from({ length: 65536 }, (_, sample) => Math.fround(sample / 65535));
    for (const shape of [
      [64, 256, 4],
      [256, 256],
      [1, 128, 128, 4],
    ]) {
      const deep = Tensor.from(samples, shape);
      const bytes = await deep.toPng({ bitDepth: 16 });
      const { bitDepth, data } = await decodePng(bytes);
      assert.equal(bitDepth, 16);
      assert.ok(data.every((sample, i) => sample === i));
      const again = await Tensor.fromImage(bytes);
      if (shape.at(-1) === 4) assertSameBits(again.reshape(shape), deep);
      else
        assert.deepEqual(
          [...again.data.subarray(0, 6)],
          [0, 0, 0, 1, 1, 1].map((v) => Math.fround(v / 65535)),
        );
    }
    const odd = await decodePng(await Tensor.from([-1, 2, Number.NaN, 0.5], [2, 2]).toPng({ bitDepth: 16 }));
    assert.deepEqual([...odd.data], [0, 65535, 0, 32768]);
  });
});

describe("Tensor.fromImage", () => {
  it("reads what LoadImage reads", async () => {
    const bytes = readFileSync(join(inputDir, "lake.png"));
    const { result } = await invokeNode("LoadImage", { image: "lake.png" }, { inputDir });
    const image = await Tensor.fromImage(bytes);
    assert.deepEqual(image.shape, [1, 64, 64, 3]);
    assertSameBits(image, result[0]);
  });

  it("makes RGB of grey, keeps alpha, and is the inverse of toPng for 8 bits", async () => {
    const grey = Tensor.from([0, 1, 0.2, 0.4], [2, 2]);
    assert.deepEqual((await Tensor.fromImage(await grey.toPng())).shape, [1, 2, 2, 3]);
    const exact = Tensor.from(
      Array.from({ length: 48 }, (_, i) => Math.fround((i * 5) / 255)),
      [1, 3, 4, 4],
    );
    assertSameBits(await Tensor.fromImage(await exact.toPng()), exact);
  });

  it("names what it cannot read", async () => {
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]);
    await refuses(Tensor.fromImage(jpeg), "picture.invalid", /^Picture: the JPEG file is damaged \([^()]+\)\.$/);
    await refuses(Tensor.fromImage(new Uint8Array()), "picture.invalid", /received another file/);
    await refuses(Tensor.fromImage("a.png" as never), "picture.invalid", /received "a\.png"/);
    const cut = readFileSync(join(inputDir, "lake.png")).subarray(0, 300);
    await refuses(Tensor.fromImage(cut), "png.invalid", /^PNG: /);
  });
});
