import assert from "node:assert/strict";
import { roundedTime } from "#src/tensor/rounding.js";

/** round(time, 6) by whole numbers: the double is a fraction over 2^1074, the decimal one over 10^6. */
function exactly(time: number): number {
  const [low, high] = new Uint32Array(Float64Array.of(time).buffer);
  const exponent = (high! >>> 20) & 0x7ff;
  const fraction = (BigInt(high! & 0xfffff) << 32n) | BigInt(low!);
  const mantissa = exponent === 0 ? fraction : fraction | (1n << 52n);
  const scaled = (mantissa << BigInt(Math.max(exponent, 1) - 1)) * 1_000_000n;
  const unit = 1n << 1074n;
  const [whole, rest] = [scaled / unit, scaled % unit];
  const isUp = 2n * rest > unit || (2n * rest === unit && whole % 2n === 1n);
  const micros = String(isUp ? whole + 1n : whole).padStart(7, "0");
  // the reader of decimals rounds correctly
  return Number(`${micros.slice(0, -6)}.${micros.slice(-6)}`);
}

describe("roundedTime", () => {
  it("rounds ties of the exact value to even, as Python does", () => {
    // multiples of 1/128 are the only doubles half-way between two millionths
    assert.deepEqual([0.0078125, 0.0234375, 0.0390625].map(roundedTime), [0.007812, 0.023438, 0.039062]);
    for (let i = 1; i < 4000; i += 2) assert.equal(roundedTime(i / 128), exactly(i / 128), String(i / 128));
  });

  it("rounds what only looks half-way by its exact value", () => {
    assert.deepEqual(
      [1.0000005, 2.5e-6, 0.5e-6, 1.5e-6, 123456.0000005, 4294967296.000001].map(roundedTime),
      [1.000001, 3e-6, 0, 2e-6, 123456.000001, 4294967296.000001],
    );
    for (let i = 0; i < 5000; i++) {
      const middle = (i * 7919 + 0.5) / 1e6;
      for (const time of [middle, middle * (1 - 2 ** -53), middle * (1 + 2 ** -52)])
        assert.equal(roundedTime(time), exactly(time), String(time));
    }
  });

  it("equals the rounding by whole numbers at every size of double", () => {
    let state = 1;
    for (let exponent = -60; exponent < 64; exponent++) {
      for (let i = 0; i < 60; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        const time = (1 + state / 2 ** 32 + i * 2 ** -52) * 2 ** exponent;
        assert.equal(roundedTime(time), exactly(time), String(time));
      }
    }
    for (const time of [0, 5e-324, 2 ** 33, 2 ** 33 - 2 ** -19, Number.MAX_VALUE])
      assert.equal(roundedTime(time), exactly(time), String(time));
  });

  it("mirrors negative times and leaves other values alone", () => {
    assert.equal(roundedTime(-0.0234375), -0.023438);
    assert.equal(roundedTime(Number.POSITIVE_INFINITY), Number.POSITIVE_INFINITY);
    assert.ok(Number.isNaN(roundedTime(Number.NaN)));
  });
});
