import assert from "node:assert/strict";
import { pixelHash } from "#src/io/pixel-hash.js";
import { sha256 } from "../../helpers/place.js";

describe("pixelHash", () => {
  const data = Uint8Array.from({ length: 24 }, (_, i) => i * 7);

  it("is SHA-256 of width, height, channels and the samples", () => {
    const bytes = Uint8Array.from([0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3, ...data]);
    assert.equal(pixelHash({ data, width: 4, height: 2, channels: 3 }), `sha256:${sha256(bytes)}`);
  });

  it("tells shapes of equal samples apart, and takes a view of a larger buffer", () => {
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
});
