import assert from "node:assert/strict";
import { encodePng } from "latentkit";
import { isPngEnd, PNG_END_BYTES } from "#src/io/png/end.js";

describe("io/png/end", () => {
  it("distinguishes a whole PNG file from a cut one", async () => {
    const file = await encodePng({ data: new Uint8Array(12), width: 2, height: 2, channels: 3 });
    assert.equal(isPngEnd(file), true);
    assert.equal(isPngEnd(file.subarray(-PNG_END_BYTES)), true);
    for (const cut of [0, 1, 11, file.length - 1]) assert.equal(isPngEnd(file.subarray(0, cut)), false);
  });
});
