import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodePng, invokeNode, Tensor } from "latentkit";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { makeApng } from "../../../../helpers/png/apng-file.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("LoadImageMask", () => {
  const folder = temporaryFolder();
  const load = async (image: string, channel: string): Promise<Tensor> =>
    (await invokeNode("LoadImageMask", { image, channel }, { inputDir: folder() })).result[0] as Tensor;

  it("gives one channel as mask, alpha turned round", async () => {
    const rgba = { data: Uint8Array.of(255, 0, 51, 0), width: 1, height: 1, channels: 4 };
    writeFileSync(join(folder(), "rgba.png"), await encodePng(rgba));
    const values = [];
    for (const channel of ["red", "green", "blue", "alpha"]) values.push((await load("rgba.png", channel)).data[0]);
    assert.deepEqual(values, [1, 0, Math.fround(0.2), 1]);
    const grey = { data: Uint8Array.of(51), width: 1, height: 1, channels: 1 };
    writeFileSync(join(folder(), "grey.png"), await encodePng(grey));
    for (const channel of ["red", "blue"]) assert.equal((await load("grey.png", channel)).data[0], Math.fround(0.2));
    assertSameBits(await load("grey.png", "alpha"), Tensor.zeros([1, 1, 1]));
  });

  it("reads the first frame of an animation, and one transparent colour as alpha", async () => {
    const frames = [0, 255].map((value) => ({ control: {}, bytes: [value, value] }));
    writeFileSync(join(folder(), "a.png"), makeApng({ width: 2, height: 1, colour: 0, transparency: [0, 0], frames }));
    assertSameBits(await load("a.png", "red"), Tensor.zeros([1, 1, 2]));
    assertSameBits(await load("a.png", "alpha"), Tensor.full([1, 1, 2], 1));
  });
});
