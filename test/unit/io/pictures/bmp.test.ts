import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { decodePicture } from "#src/io/pictures/decode.js";
import { refuses } from "../../../helpers/errors.js";

interface Bitmap {
  width: number;
  height: number;
  bits: number;
  pixels: readonly number[];
  compression?: number;
  colours?: number;
  palette?: readonly number[];
  masks?: readonly number[];
  /** Length of the header. */
  length?: number;
}

/** A BMP file; masks follow a header of 40 bytes, and are a part of longer ones. */
function bmp({
  width,
  height,
  bits,
  pixels,
  compression = 0,
  colours = 0,
  palette = [],
  masks = [],
  length = 40,
}: Bitmap) {
  const head = Buffer.alloc(14 + Math.max(length, length === 40 ? 40 + 4 * masks.length : 0));
  head.write("BM");
  head.writeUInt32LE(head.length + palette.length, 10);
  head.writeUInt32LE(length, 14);
  if (length === 12) for (const [i, value] of [width, height, 1, bits].entries()) head.writeUInt16LE(value, 18 + 2 * i);
  else {
    head.writeInt32LE(width, 18);
    head.writeInt32LE(height, 22);
    head.writeUInt16LE(bits, 28);
    head.writeUInt32LE(compression, 30);
    head.writeUInt32LE(colours, 46);
    for (const [i, mask] of masks.entries()) head.writeUInt32LE(mask, 54 + 4 * i);
  }
  return Buffer.concat([head, Buffer.from(palette), Buffer.from(pixels)]);
}

/** Black, red, green and blue: blue comes first, and a byte without meaning last. */
const PALETTE = [0, 0, 0, 0, 0, 0, 200, 0, 0, 150, 0, 0, 100, 0, 0, 0];
const [BLACK, RED, GREEN, BLUE] = [
  [0, 0, 0],
  [200, 0, 0],
  [0, 150, 0],
  [0, 0, 100],
];

const read = async (file: Bitmap) => {
  const { channels, data } = await decodePicture(bmp(file));
  return { channels, data: [...data] };
};
const rgb = (...pixels: readonly (readonly number[] | undefined)[]) => ({
  channels: 3,
  data: pixels.flatMap((pixel) => pixel!),
});

describe("io/pictures/bmp", () => {
  it("reads rows from the bottom, or from the top if the height is negative", async () => {
    const file = { width: 1, height: 2, bits: 24, pixels: [3, 2, 1, 0, 6, 5, 4, 0] };
    assert.deepEqual(await read(file), rgb([4, 5, 6], [1, 2, 3]));
    assert.deepEqual(await read({ ...file, height: -2 }), rgb([1, 2, 3], [4, 5, 6]));
    assert.deepEqual(await read({ ...file, length: 12 }), rgb([4, 5, 6], [1, 2, 3]));
  });

  it("reads palettes of 1, 4 and 8 bits; colours that the file lacks are black", async () => {
    const colours = { height: 1, palette: PALETTE, colours: 4 };
    const two = { width: 3, height: 1, bits: 1, colours: 2, palette: PALETTE.slice(0, 8) };
    assert.deepEqual(await read({ ...two, pixels: [0b10100000, 0, 0, 0] }), rgb(RED, BLACK, RED));
    assert.deepEqual(await read({ ...colours, width: 3, bits: 4, pixels: [0x12, 0x30, 0, 0] }), rgb(RED, GREEN, BLUE));
    assert.deepEqual(await read({ ...colours, width: 2, bits: 8, pixels: [3, 77, 0, 0] }), rgb(BLUE, BLACK));
  });

  it("reads runs, single pixels, jumps and ends of rows", async () => {
    const file = { width: 5, height: 2, palette: PALETTE, colours: 4 };
    const eight = [0, 3, 1, 2, 3, 0, 2, 1, 0, 0, 0, 2, 2, 0, 1, 2, 0, 1];
    const rows = rgb(BLACK, BLACK, GREEN, BLACK, BLACK, RED, GREEN, BLUE, RED, RED);
    assert.deepEqual(await read({ ...file, bits: 8, compression: 1, pixels: eight }), rows);
    const four = [0, 3, 0x12, 0x30, 2, 0x11, 0, 0, 0, 2, 2, 0, 1, 0x20, 0, 1];
    assert.deepEqual(await read({ ...file, bits: 4, compression: 2, pixels: four }), rows);
  });

  it("drops what a run has beyond its row", async () => {
    const file = { width: 2, height: 2, bits: 8, compression: 1, palette: PALETTE, colours: 4 };
    assert.deepEqual(await read({ ...file, pixels: [9, 1, 0, 0, 1, 2, 0, 1] }), rgb(GREEN, BLACK, RED, RED));
  });

  it("stretches parts of 5 and 6 bits, and reads alpha only by a mask", async () => {
    const one = { width: 1, height: 1 };
    assert.deepEqual(await read({ ...one, bits: 16, pixels: [0x30, 0x7e, 0, 0] }), rgb([255, 139, 131]));
    const masks = [0xf800, 0x7e0, 0x1f];
    const deep = { ...one, bits: 16, compression: 3, masks, pixels: [0x30, 0xfe, 0, 0] };
    assert.deepEqual(await read(deep), rgb([255, 198, 131]));
    const wide = { ...one, bits: 32, pixels: [30, 20, 10, 99] };
    assert.deepEqual(await read(wide), rgb([10, 20, 30]));
    const bytes = [0xff, 0xff00, 0xff0000, 0xff000000];
    const alpha = await read({ ...wide, compression: 3, masks: bytes, length: 124 });
    assert.deepEqual(alpha, { channels: 4, data: [30, 20, 10, 99] });
  });

  it("refuses files that end early, at any byte, and any other header", async () => {
    const whole = bmp({ width: 2, height: 2, bits: 24, pixels: new Array(14).fill(7) });
    await decodePicture(whole);
    for (let end = 2; end < whole.length; end++)
      await refuses(() => decodePicture(whole.subarray(0, end)), "picture.invalid", /^Picture: the BMP file /);
    const runs = { width: 2, height: 2, bits: 8, compression: 1, palette: PALETTE, colours: 4 };
    await refuses(() => read({ ...runs, pixels: [2, 1, 0, 0] }), "picture.invalid", /ends early/);
    for (let at = 14; at < 54; at++) {
      for (const value of [0, 1, 0x7f, 0xff]) {
        const damaged = Buffer.from(whole);
        damaged[at] = value;
        await decodePicture(damaged).catch((error: unknown) => assert.ok(error instanceof LatentkitError));
      }
    }
  });

  it("refuses more pixels than allowed, or than its runs could fill, before it allocates them", async () => {
    const large = { width: 2 ** 16, height: 2 ** 12, bits: 24, pixels: [] };
    await refuses(() => read(large), "picture.too-large", /received 65536 x 4096/);
    const runs = { ...large, height: 2 ** 11, bits: 8, compression: 1, pixels: [0, 1] };
    await refuses(() => read(runs), "picture.invalid", /ends early/);
    const huge = { width: 1, height: 1, bits: 24, compression: 5, pixels: [0, 0, 0, 0] };
    await refuses(() => read(huge), "picture.invalid", /24 bits a pixel with compression 5/);
  });
});
