import assert from "node:assert/strict";
import { fromHalves, toHalves } from "#src/host/checkpoint/runtime/float16.js";

const half = (value: number) => toHalves(Float32Array.of(value))[0]!;

describe("toHalves", () => {
  it("turns every half that is a number back into itself", () => {
    const all = Uint16Array.from({ length: 65_536 }, (_, bits) => bits).filter((bits) => (bits & 0x7fff) <= 0x7c00);
    assert.deepEqual(toHalves(fromHalves(all)), all);
  });

  it("rounds to the nearest half, ties to even", () => {
    assert.equal(half(1 + 2 ** -11), 0x3c00);
    assert.equal(half(1 + 3 * 2 ** -11), 0x3c02);
    assert.equal(half(1 + 2 ** -11 + 2 ** -20), 0x3c01);
    assert.equal(half(2 ** -25), 0);
    assert.equal(half(2 ** -25 + 2 ** -40), 1);
    assert.equal(half(3 * 2 ** -25), 2);
    assert.equal(half(2 ** -14 - 2 ** -26), 0x0400);
  });

  it("makes infinity of what is too large, and keeps NaN and signs", () => {
    assert.equal(half(65_519), 0x7bff);
    assert.equal(half(65_520), 0x7c00);
    assert.equal(half(-1e30), 0xfc00);
    assert.equal(half(Number.POSITIVE_INFINITY), 0x7c00);
    assert.equal(half(Number.NaN) & 0x7fff, 0x7e00);
    assert.equal(half(-0), 0x8000);
    assert.equal(half(-1e-30), 0x8000);
  });
});
