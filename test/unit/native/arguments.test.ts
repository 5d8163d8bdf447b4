import assert from "node:assert/strict";
import type { NativeBindings, SamplingSpec } from "#src/native/bindings.js";
import { loadNative } from "#src/native/load.js";
import type { InjectOptions } from "#src/native/tensor-operations.js";

const native = loadNative();

/** The module as untyped callers see it. */
const anything = native as unknown as Record<keyof NativeBindings, (...args: unknown[]) => unknown>;

const fault = (call: () => unknown, message: RegExp) => assert.throws(call, { message });
const typeFault = (call: () => unknown, message: RegExp) => assert.throws(call, { name: "TypeError", message });
const rangeFault = (call: () => unknown, message: RegExp) => assert.throws(call, { name: "RangeError", message });

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
      typeFault(() => anything.scale(wrong, x, 1), /^scale: argument "out": expected a Float32Array/);
      typeFault(() => anything.scale(x, wrong, 1), /"x"/);
    }
    for (const wrong of [undefined, null, "1", 1n, {}, Symbol("k")])
      typeFault(() => anything.scale(x, x, wrong), /"k": expected a number/);
    typeFault(() => anything.scale(), /"out"/);
    fault(() => anything.mtSeed(new Uint8Array(native.mtStateBytes), 1), /"seed": expected a bigint/);
    fault(() => anything.schedule(DISCRETE, x, 7, 1, true, 1), /"scheduler": expected a string/);
    fault(() => anything.samplingTable(null), /"sampling": expected an object/);
    fault(() => anything.samplingTable({ ...DISCRETE, shift: "1" }), /"sampling.shift"/);
    fault(() => anything.samplingTable({ ...DISCRETE, kind: "edm2" }), /"sampling.kind"/);
  });

  it("names an argument of the wrong length or outside its range", () => {
    rangeFault(() => native.axpy(f32(1, 2), f32(1, 2), f32(1), 1), /"y": expected 2 elements, received 1/);
    fault(() => native.resizeBilinear(f32(1), f32(1, 2), 1, 2, 2, 1, 1), /"x": expected 4 elements/);
    fault(() => native.resizeBilinear(f32(1), f32(1), 1, 1, 1.5, 1, 1), /"inWidth": expected a whole/);
    assert.throws(() => native.resizeBilinear(f32(1), f32(1), 2 ** 52, 2 ** 52, 2 ** 52, 1, 1), { name: "RangeError" });
    fault(() => native.maskedBlend(f32(1), f32(1), f32(1), f32(), 1, 1, 1, 1), /"mask"/);
    rangeFault(() => native.philoxRandn(f32(1), -1n, 0n, 0, 1), /"seed"/);
    rangeFault(() => native.philoxRandn(f32(1), 1n, 2n ** 64n, 0, 1), /"offset"/);
    fault(() => native.philoxSkip(0.5, 0n, 0), /"count": expected a whole number/);
    rangeFault(() => native.philoxSkip(1, 0n, 255), /^philoxSkip: /);
    rangeFault(() => native.setThreads(0), /"count"/);
    assert.throws(() => anything.setIsa("sse9"), { message: /"name"/, status: /unsupported|bad-argument/ });
    const brownian = (ends: Uint32Array, words: number) =>
      native.brownian(f32(1), f32(1), f32(1), 1, ends, new Uint32Array(words), new Uint32Array(1), 1);
    fault(() => brownian(Uint32Array.of(1), 8), /"cuts": expected 7 elements, received 8/);
    assert.throws(() => brownian(Uint32Array.of(1), 14), { status: "bad-argument" });
    assert.throws(() => brownian(Uint32Array.of(2), 7), { status: "bad-length" });
    assert.throws(() => brownian(new Uint32Array(), 7), { status: "bad-length" });
    fault(() => native.mtSeed(new Uint8Array(3), 1n), /"state"/);
    fault(() => native.composite(f32(1), [1, 1, 1, 1], f32(1), [1, 1, 1, 1], Number.NaN, 0), /"x"/);
    fault(() => anything.composite(f32(1), [1, 1, 1], f32(1), [1, 1, 1, 1], 0, 0), /"shape": expected 4 sizes/);
    fault(
      () => native.schedule(DISCRETE, f32(1), "karras", 4, false, 1),
      /"table": expected at least 2 elements, received 1/,
    );
    fault(() => native.schedule(DISCRETE, native.samplingTable(DISCRETE), "nice", 4, false, 1), /"scheduler"/);
  });

  it("names what is wrong with the terms of a sum, an area and the items of a batch", () => {
    const x = f32(1, 2);
    for (const terms of [[], [1], [1, x, 2], Array.from({ length: 18 }, (_, at) => (at % 2 === 0 ? 1 : x))])
      rangeFault(() => anything.weightedSum(x, ...terms), /"terms": expected 1 to 8/);
    typeFault(() => anything.weightedSum(x, x, 1), /"coefficient"/);
    rangeFault(() => native.weightedSum(x, 1, x, 1, f32(1)), /"x": expected 2/);
    const all = f32(1, 2, 3);
    fault(() => native.weightedSum(all.subarray(1), 1, x, 1, all.subarray(0, 2)), /overlaps/);
    const one = [1, 1, 1, 1] as const;
    const add = (area: readonly [number, number, number, number], masks: number) =>
      native.addMasked(f32(1), one, f32(1), area, f32(1), masks);
    assert.throws(() => add([0, 1, 1, 1], 1), { name: "RangeError", status: "bad-argument" });
    assert.throws(() => add([2 ** 53 - 1, 0, 1, 1], 1), { name: "RangeError", status: "bad-argument" });
    fault(() => add([0, 0, 2, 1], 1), /"source": expected 2 elements/);
    fault(() => add([0, 0, 1, 1], 2), /"mask": expected 2 elements/);
    fault(
      () => native.addMasked(x.subarray(0, 1), one, x.subarray(0, 1), [0, 0, 1, 1], f32(1), 1),
      /"source".*overlaps/,
    );
    fault(() => native.stdOfItems(f32(0, 0), f32(1, 2, 3)), /"out": expected a number of items/);
    fault(() => native.stdOfItems(f32(), f32()), /"out": expected a number of items/);
    fault(() => native.scaledError(x, x, f32(1), 1, 1), /"previous": expected 2 elements/);
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
    typeFault(() => native.std(detached), /detached/);
    const shared = new Float32Array(new SharedArrayBuffer(8));
    typeFault(() => native.std(shared), /SharedArrayBuffer/);
  });

  it("refuses memory that overlaps the output, and allows the very same if the contract does", () => {
    const all = f32(1, 2, 3, 4, 5);
    rangeFault(() => native.scale(all.subarray(1), all.subarray(0, 4), 2), /"x".*overlaps/);
    fault(() => native.resizeBilinear(all, all, 1, 1, 5, 1, 5), /overlaps/);
    const words = new Uint32Array(all.buffer, 0, 1);
    const [ends, cuts] = [Uint32Array.of(1), new Uint32Array(7)];
    fault(() => native.brownian(f32(1), f32(1), all, 1, ends, cuts, words, 1), /"terms"/);
    fault(() => native.brownian(f32(1), f32(1), all, 1, words, cuts, ends, 1), /"ends"/);
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
    fault(() => native.injectNoise(out, f32(1, 2, 3, 4), f32(1, 2, 3, 4), hostile), /"out".*detached/);
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
    rangeFault(() => native.mtRandn(state, f32(1)), /"state"/);
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
