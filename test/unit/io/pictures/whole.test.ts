import assert from "node:assert/strict";
import { encodeItem } from "#src/io/files/encode-item.js";
import { EXTENSIONS, PICTURE_TYPES } from "#src/io/pictures/format.js";
import { isWholePicture } from "#src/io/pictures/whole.js";
import { Tensor } from "#src/tensor/tensor.js";

describe("io/pictures/whole", () => {
  const isWhole = (name: string, file: Buffer) =>
    isWholePicture(name, file.length, async (at, length) => file.subarray(at, at + length));

  it("tells whole files of each format from cut ones and from such that end in zeros, with texts and without", async () => {
    const image = Tensor.from(
      Float32Array.from({ length: 32 * 32 * 3 }, (_, i) => (i % 97) / 97),
      [1, 32, 32, 3],
    );
    for (const type of PICTURE_TYPES) {
      for (const text of [[], [["prompt", "{}"] as const]]) {
        const file = await encodeItem(image, 0, { format: { type }, text });
        const name = `a${EXTENSIONS[type]}`;
        assert.equal(await isWhole(name, file), true, `${type} with ${text.length} texts`);
        for (const length of [0, 1, 20, file.length - 1]) {
          assert.equal(await isWhole(name, file.subarray(0, length)), false, `${type} of ${length} bytes`);
        }
        const zeros = Buffer.concat([file.subarray(0, file.length - 40), Buffer.alloc(40)]);
        assert.equal(await isWhole(name, zeros), false, `${type} that ends in zeros`);
      }
    }
  });

  it("takes any other file as whole", async () => {
    assert.equal(await isWhole("a.txt", Buffer.alloc(0)), true);
    assert.equal(await isWhole("noname", Buffer.from("x")), true);
  });
});
