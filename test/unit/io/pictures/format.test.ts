import assert from "node:assert/strict";
import { FORMAT } from "#src/io/pictures/format.js";

describe("io/pictures/format", () => {
  it("takes what a type of files can do", () => {
    const good = [
      {},
      { type: "png" },
      { bitDepth: 16 },
      { type: "png", bitDepth: 8, lossless: true },
      { type: "webp", quality: 1 },
      { type: "webp", lossless: true },
      { type: "avif", quality: 100, lossless: false },
      { type: "jpeg", quality: 80 },
    ];
    for (const format of good) assert.equal(FORMAT[1](format), true, JSON.stringify(format));
  });

  it("refuses what it cannot do, and what is no format", () => {
    const bad = [
      ...["webp", null, [], 5, undefined],
      { type: "gif" },
      { type: "jpg" },
      { kind: "png" },
      { quality: 80 },
      { type: "webp", quality: 0 },
      { type: "webp", quality: 101 },
      { type: "webp", quality: 80.5 },
      { type: "webp", quality: "80" },
      { type: "webp", quality: 80, lossless: true },
      { type: "webp", bitDepth: 16 },
      { type: "jpeg", lossless: true },
      { bitDepth: 12 },
      { lossless: "yes" },
    ];
    for (const format of bad) assert.equal(FORMAT[1](format), false, JSON.stringify(format));
  });
});
