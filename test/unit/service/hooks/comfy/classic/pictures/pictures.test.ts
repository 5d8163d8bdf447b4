import assert from "node:assert/strict";
import { decodePng, encodePng } from "latentkit";
import sharp from "sharp";
import { CHANNELS, viewPicture } from "#src/service/hooks/comfy/classic/pictures/pictures.js";

const SIDES = { width: 7, height: 5 };
const shallow = (channels: number) => Uint8Array.from({ length: 35 * channels }, (_, at) => (at * 37) % 256);
const deep = (channels: number) => Uint16Array.from({ length: 35 * channels }, (_, at) => (at * 7919) % 65536);

/** The samples that a channel of a picture shows, one by one. */
function expected(data: Uint8Array | Uint16Array, count: number, wish: string): { channels: number; data: number[] } {
  const bytes = [...data].map((sample) => (data instanceof Uint16Array ? sample >> 8 : sample));
  const pixels = Array.from({ length: 35 }, (_, at) => bytes.slice(at * count, (at + 1) * count));
  const hasAlpha = count % 2 === 0;
  if (wish === "rgba") return { channels: count, data: bytes };
  if (wish === "rgb") {
    const channels = hasAlpha ? count - 1 : count;
    return { channels, data: pixels.flatMap((pixel) => pixel.slice(0, channels)) };
  }
  return { channels: 4, data: pixels.flatMap((pixel) => [0, 0, 0, hasAlpha ? pixel.at(-1)! : 255]) };
}

describe("viewPicture", () => {
  for (const channels of [1, 2, 3, 4]) {
    it(`shows channels of ${channels}, of 8 and 16 bits, as the bytes of the PNG file that they make`, async () => {
      for (const data of [shallow(channels), deep(channels)]) {
        const file = await encodePng({
          data,
          ...SIDES,
          channels,
          ...(data instanceof Uint16Array && { bitDepth: 16 }),
        });
        for (const wish of CHANNELS) {
          const right = expected(data, channels, wish);
          const shown = await viewPicture({ task: "view", file, channels: wish });
          const picture = { ...SIDES, channels: right.channels, data: Uint8Array.from(right.data) };
          assert.deepEqual(shown, await encodePng(picture), `${data.constructor.name} ${wish}`);
        }
      }
    });
  }

  it("is lossy where a preview is wished, as sharp writes it", async () => {
    const data = shallow(4);
    const file = await encodePng({ data, ...SIDES, channels: 4 });
    const raw = () => sharp(data, { raw: { ...SIDES, channels: 4 } }).toColourspace("srgb");
    const webp = await viewPicture({ task: "view", file, channels: "rgba", preview: { type: "webp", quality: 80 } });
    assert.deepEqual(webp, await raw().webp({ quality: 80 }).toBuffer());
    const jpeg = await viewPicture({ task: "view", file, channels: "rgba", preview: { type: "jpeg", quality: 80 } });
    assert.deepEqual(jpeg, await raw().removeAlpha().jpeg({ quality: 80, chromaSubsampling: "4:2:0" }).toBuffer());
  });

  it("reads no picture of more than 2^24 pixels: its head is enough", async () => {
    const [most, more] = await Promise.all(
      [4096, 4097].map((height) =>
        encodePng({ data: new Uint8Array(4096 * height), width: 4096, height, channels: 1 }, { level: 1 }),
      ),
    );
    const { width, height } = await decodePng((await viewPicture({ task: "view", file: most!, channels: "rgb" }))!);
    assert.deepEqual([width, height], [4096, 4096]);
    // the rest may be missing
    for (const file of [more!, more!.subarray(0, 100)]) {
      assert.equal(await viewPicture({ task: "view", file, channels: "rgb" }), undefined);
    }
    const webp = await sharp({ create: { width: 4097, height: 4096, channels: 3, background: "red" } })
      .webp()
      .toBuffer();
    assert.equal(await viewPicture({ task: "view", file: webp, channels: "rgb" }), undefined);
    assert.equal(await viewPicture({ task: "view", file: Buffer.from("no picture"), channels: "rgb" }), undefined);
  });
});
