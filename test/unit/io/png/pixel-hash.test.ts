import assert from "node:assert/strict";
import { blake3 } from "@noble/hashes/blake3";
import { pixelHash } from "#src/io/png/pixel-hash.js";
import { loadNative } from "#src/native/load.js";

/** The same by a library of others. */
function known(data: Uint8Array, width: number, height: number, channels: number): string {
  const header = Buffer.alloc(12);
  for (const [index, side] of [width, height, channels].entries()) header.writeUInt32BE(side, index * 4);
  return `blake3:${Buffer.from(blake3(Buffer.concat([header, data]))).toString("hex")}`;
}

describe("pixelHash", () => {
  const native = loadNative();
  const best = native.isa();
  const data = Uint8Array.from({ length: 24 }, (_, i) => i * 7);

  afterEach(() => native.setIsa(best));

  for (const isa of native.isas()) {
    it(`is BLAKE3 of width, height, channels and the samples, with ${isa}`, () => {
      native.setIsa(isa);
      const widths = [0, 1, 52, 53, 1011, 1012, 1013, 2036, 4096, 8180, 16_372, 16_373, 17_400, 40_001, 131_072];
      for (const width of widths) {
        for (const channels of [1, 2, 3, 4] as const) {
          const samples = Uint8Array.from({ length: width * channels }, (_, i) => (i * i) >> 3);
          const hash = pixelHash({ data: samples, width, height: 1, channels });
          assert.equal(hash, known(samples, width, 1, channels), `${width} x 1 x ${channels}`);
        }
      }
    });
  }

  it("distinguishes shapes of equal samples, and accepts a view of a buffer", () => {
    const hashes = new Set<string>();
    for (const [width, height, channels] of [
      [4, 2, 3],
      [2, 4, 3],
      [6, 4, 1],
      [12, 1, 2],
    ] as const) {
      hashes.add(pixelHash({ data, width, height, channels }));
    }
    assert.equal(hashes.size, 4);
    const view = Uint8Array.from([9, ...data, 9]).subarray(1, 25);
    const [a, b] = [data, view].map((pixels) => pixelHash({ data: pixels, width: 4, height: 2, channels: 3 }));
    assert.equal(a, b);
  });

  it("refuses samples that do not fit the size", () => {
    const picture = { data, width: 4, height: 3, channels: 3 } as const;
    assert.throws(() => pixelHash(picture), /pixelHash: .*"samples": expected 36/);
    assert.throws(() => native.pixelHash(data, 4, 2, 5), /"channels"/);
    assert.throws(() => native.pixelHash(data, 2 ** 32, 2, 3), /"width"/);
  });
});
