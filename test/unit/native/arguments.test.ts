import assert from "node:assert/strict";
import type { NativeBindings, SamplingSpec } from "#src/native/bindings.js";
import { loadNative } from "#src/native/load.js";
import type { InjectOptions } from "#src/native/tensor-operations.js";

const native = loadNative();

/** The module as untyped callers see it. */
const anything = native as unknown as Record<keyof NativeBindings, (...args: unknown[]) => unknown>;

const f32 = (...values: number[]) => Float32Array.from(values);
const DISCRETE: SamplingSpec = {
  kind: "discrete",
  linearStart: 0.00085,
  linearEnd: 0.012,
  zsnr: false,
  sigmaMin: 0,
  sigmaMax: 0,
  shift: 0,
  multiplier: 0,
};
const INJECT: InjectOptions = { strength: 1, average: false, normalize: false, mix: 0 };

describe("arguments of the native module", () => {
  it("names an argument of the wrong type", () => {
    const x = f32(1, 2);
    for (const wrong of [
      undefined,
      null,
      1,
      "x",
      [1, 2],
      {},
      new Float64Array(2),
      new Uint8Array(8),
      new DataView(x.buffer),
    ]) {
      assert.throws(() => anything.scale(wrong, x, 1), {
        name: "TypeError",
        message: /^scale: argument "out": expected a Float32Array/,
      });
      assert.throws(() => anything.scale(x, wrong, 1), { name: "TypeError", message: /"x"/ });
    }
    for (const wrong of [undefined, null, "1", 1n, {}, Symbol("k")])
      assert.throws(() => anything.scale(x, x, wrong), { name: "TypeError", message: /"k": expected a number/ });
    assert.throws(() => anything.scale(), { name: "TypeError", message: /"out"/ });
    assert.throws(() => anything.mtSeed(new Uint8Array(native.mtStateBytes), 1), {
      message: /"seed": expected a bigint/,
    });
    assert.throws(() => anything.schedule(DISCRETE, x, 7, 1, true, 1), { message: /"scheduler": expected a string/ });
    assert.throws(() => anything.samplingTable(null), { message: /"sampling": expected an object/ });
    assert.throws(() => anything.samplingTable({ ...DISCRETE, shift: "1" }), { message: /"sampling.shift"/ });
    assert.throws(() => anything.samplingTable({ ...DISCRETE, kind: "edm2" }), { message: /"sampling.kind"/ });
  });

  it("names an argument of the wrong length or outside its range", () => {
    assert.throws(() => native.axpy(f32(1, 2), f32(1, 2), f32(1), 1), {
      name: "RangeError",
      message: /"y": expected 2 elements, received 1/,
    });
    assert.throws(() => native.resizeBilinear(f32(1), f32(1, 2), 1, 2, 2, 1, 1), {
      message: /"x": expected 4 elements/,
    });
    assert.throws(() => native.resizeBilinear(f32(1), f32(1), 1, 1, 1.5, 1, 1), {
      message: /"inWidth": expected a whole/,
    });
    assert.throws(() => native.resizeBilinear(f32(1), f32(1), 2 ** 52, 2 ** 52, 2 ** 52, 1, 1), { name: "RangeError" });
    assert.throws(() => native.maskedBlend(f32(1), f32(1), f32(1), f32(), 1, 1, 1, 1), { message: /"mask"/ });
    assert.throws(() => native.philoxRandn(f32(1), -1n, 0n, 0, 1), { name: "RangeError", message: /"seed"/ });
    assert.throws(() => native.philoxRandn(f32(1), 1n, 2n ** 64n, 0, 1), { name: "RangeError", message: /"offset"/ });
    assert.throws(() => native.philoxSkip(0.5, 0n, 0), { message: /"count": expected a whole number/ });
    assert.throws(() => native.philoxSkip(1, 0n, 255), { name: "RangeError", message: /^philoxSkip: / });
    assert.throws(() => native.setThreads(0), { name: "RangeError", message: /"count"/ });
    assert.throws(() => anything.setIsa("sse9"), { message: /"name"/, status: /unsupported|bad-argument/ });
    const brownian = (ends: Uint32Array, words: number) =>
      native.brownian(f32(1), f32(1), f32(1), 1, ends, new Uint32Array(words), new Uint32Array(1), 1);
    assert.throws(() => brownian(Uint32Array.of(1), 8), { message: /"cuts": expected 7 elements, received 8/ });
    assert.throws(() => brownian(Uint32Array.of(1), 14), { status: "bad-argument" });
    assert.throws(() => brownian(Uint32Array.of(2), 7), { status: "bad-length" });
    assert.throws(() => brownian(new Uint32Array(), 7), { status: "bad-length" });
    assert.throws(() => native.mtSeed(new Uint8Array(3), 1n), { message: /"state"/ });
    assert.throws(() => native.composite(f32(1), [1, 1, 1, 1], f32(1), [1, 1, 1, 1], Number.NaN, 0), {
      message: /"x"/,
    });
    assert.throws(() => anything.composite(f32(1), [1, 1, 1], f32(1), [1, 1, 1, 1], 0, 0), {
      message: /"shape": expected 4 sizes/,
    });
    assert.throws(() => native.schedule(DISCRETE, f32(1), "karras", 4, false, 1), {
      message: /"table": expected at least 2 elements, received 1/,
    });
    assert.throws(() => native.schedule(DISCRETE, native.samplingTable(DISCRETE), "nice", 4, false, 1), {
      message: /"scheduler"/,
    });
  });

  it("names what is wrong with the terms of a sum, an area and the items of a batch", () => {
    const x = f32(1, 2);
    for (const terms of [[], [1], [1, x, 2], Array.from({ length: 18 }, (_, at) => (at % 2 === 0 ? 1 : x))])
      assert.throws(() => anything.weightedSum(x, ...terms), {
        name: "RangeError",
        message: /"terms": expected 1 to 8/,
      });
    assert.throws(() => anything.weightedSum(x, x, 1), { name: "TypeError", message: /"coefficient"/ });
    assert.throws(() => native.weightedSum(x, 1, x, 1, f32(1)), { name: "RangeError", message: /"x": expected 2/ });
    const all = f32(1, 2, 3);
    assert.throws(() => native.weightedSum(all.subarray(1), 1, x, 1, all.subarray(0, 2)), { message: /overlaps/ });
    const one = [1, 1, 1, 1] as const;
    const add = (area: readonly [number, number, number, number], masks: number) =>
      native.addMasked(f32(1), one, f32(1), area, f32(1), masks);
    assert.throws(() => add([0, 1, 1, 1], 1), { name: "RangeError", status: "bad-argument" });
    assert.throws(() => add([2 ** 53 - 1, 0, 1, 1], 1), { name: "RangeError", status: "bad-argument" });
    assert.throws(() => add([0, 0, 2, 1], 1), { message: /"source": expected 2 elements/ });
    assert.throws(() => add([0, 0, 1, 1], 2), { message: /"mask": expected 2 elements/ });
    assert.throws(() => native.addMasked(x.subarray(0, 1), one, x.subarray(0, 1), [0, 0, 1, 1], f32(1), 1), {
      message: /"source".*overlaps/,
    });
    assert.throws(() => native.stdOfItems(f32(0, 0), f32(1, 2, 3)), { message: /"out": expected a number of items/ });
    assert.throws(() => native.stdOfItems(f32(), f32()), { message: /"out": expected a number of items/ });
    assert.throws(() => native.scaledError(x, x, f32(1), 1, 1), { message: /"previous": expected 2 elements/ });
  });

  it("gives failures of the core a status", () => {
    const same = f32(1, 1, 1, 1);
    const options = { ...INJECT, normalize: true };
    assert.throws(() => native.injectNoise(f32(0, 0, 0, 0), same, f32(0, 0, 0, 0), options), {
      name: "RangeError",
      status: "zero-deviation",
    });
    assert.throws(() => native.samplingTable({ ...DISCRETE, linearStart: Number.NaN }), { status: "bad-argument" });
  });

  it("refuses detached and shared memory", () => {
    const detached = f32(1, 2);
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    assert.throws(() => native.std(detached), { name: "TypeError", message: /detached/ });
    const shared = new Float32Array(new SharedArrayBuffer(8));
    assert.throws(() => native.std(shared), { name: "TypeError", message: /SharedArrayBuffer/ });
  });

  it("refuses memory that overlaps the output, and allows the very same where the contract does", () => {
    const all = f32(1, 2, 3, 4, 5);
    assert.throws(() => native.scale(all.subarray(1), all.subarray(0, 4), 2), {
      name: "RangeError",
      message: /"x".*overlaps/,
    });
    assert.throws(() => native.resizeBilinear(all, all, 1, 1, 5, 1, 5), { message: /overlaps/ });
    const words = new Uint32Array(all.buffer, 0, 1);
    const [ends, cuts] = [Uint32Array.of(1), new Uint32Array(7)];
    assert.throws(() => native.brownian(f32(1), f32(1), all, 1, ends, cuts, words, 1), { message: /"terms"/ });
    assert.throws(() => native.brownian(f32(1), f32(1), all, 1, words, cuts, ends, 1), { message: /"ends"/ });
    native.scale(all, all, 2);
    assert.deepEqual(all, f32(2, 4, 6, 8, 10));
    native.scale(all.subarray(0, 2), all.subarray(2, 4), 1);
    assert.deepEqual(all, f32(6, 8, 6, 8, 10));
  });

  it("is safe from getters that take memory away in the middle of a call", () => {
    const out = f32(1, 2, 3, 4);
    const hostile = {
      ...INJECT,
      get mix() {
        structuredClone(out.buffer, { transfer: [out.buffer] });
        return 0;
      },
    };
    assert.throws(() => native.injectNoise(out, f32(1, 2, 3, 4), f32(1, 2, 3, 4), hostile), {
      message: /"out".*detached/,
    });
  });

  it("passes on what a getter throws", () => {
    const hostile = {
      get kind(): "edm" {
        throw new Error("on purpose");
      },
    };
    assert.throws(() => anything.samplingTable(hostile), /on purpose/);
  });

  it("refuses generator states that mtSeed did not write", () => {
    const state = new Uint8Array(native.mtStateBytes).fill(255);
    assert.throws(() => native.mtRandn(state, f32(1)), { name: "RangeError", message: /"state"/ });
  });

  it("draws the first normals of a seed as a new generator does", () => {
    for (const count of [1, 15, 16, 40, 70_001]) {
      const state = new Uint8Array(native.mtStateBytes);
      const [a, b] = [new Float32Array(count), new Float32Array(count)];
      native.mtSeed(state, 5n);
      native.mtRandn(state, a);
      native.mtNormals(b, 5n);
      assert.deepEqual(a, b);
    }
  });

  it("reads states at any offset", () => {
    const plain = new Uint8Array(native.mtStateBytes);
    const shifted = new Uint8Array(native.mtStateBytes + 1).subarray(1);
    const [a, b] = [new Float32Array(40), new Float32Array(40)];
    native.mtSeed(plain, 5n);
    native.mtSeed(shifted, 5n);
    native.mtRandn(plain, a);
    native.mtRandn(shifted, b);
    assert.deepEqual(a, b);
  });

  it("handles empty spans", () => {
    const none = new Float32Array(0);
    native.scale(none, none, 2);
    native.byteToFloat(none, new Uint8Array(0));
    assert.ok(Number.isNaN(native.std(none)));
  });
});
