import assert from "node:assert/strict";
import { randn, sigmas, Tensor } from "latentkit";
import { brownianNoise } from "#src/host/sampling/noise.js";
import { loadNative } from "#src/native/load.js";
import { axpy, scale } from "#src/tensor/ops.js";
import { roundedTime } from "#src/tensor/rounding.js";
import { seedSequence } from "#src/tensor/seed-sequence.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

const KARRAS = sigmas({ scheduler: "karras", steps: 6 });
const [MAX, MIN] = [KARRAS[0]!, KARRAS[5]!];
const SHAPE = [1, 4, 6, 5];

/** The two words of a number. */
const words = (k: bigint): number[] => (k < 2n ** 32n ? [Number(k)] : [Number(k % 2n ** 32n), Number(k >> 32n)]);

/** The same noise by the plain walk from the root, without memory of earlier requests. */
function walked(
  seed: bigint,
  [sigma, next]: readonly [number, number],
  shape: readonly number[],
  [min, max]: readonly [number, number] = [MIN, MAX],
): Tensor {
  const seeds = seedSequence(seed);
  const [start, end] = [roundedTime(min), roundedTime(max)];
  const inside = (time: number) => Math.min(Math.max(roundedTime(time), start), end);
  const terms: Tensor[] = [];
  const visit = (w: Tensor, [l, r]: [number, number], [a, b]: [number, number], k: bigint, d: number): void => {
    if (a === l && b === r) {
      terms.push(w);
      return;
    }
    const m = roundedTime((l + r) / 2);
    const z = randn(shape, { seed: seeds([...words(k), d]) });
    const left = axpy(scale(scale(w, m - l), 1 / (r - l)), z, Math.sqrt((m - l) * (r - m) * (1 / (r - l))));
    if (a < m) visit(left, [l, m], [a, Math.min(b, m)], 2n * k, d + 1);
    if (b > m) visit(axpy(w, left, -1), [m, r], [Math.max(a, m), b], 2n * k + 1n, d + 1);
  };
  const whole = scale(randn(shape, { seed: seeds([]) }), Math.sqrt(max - min));
  visit(whole, [start, end], [inside(Math.min(sigma, next)), inside(Math.max(sigma, next))], 0n, 0);
  const sum = terms.reduce((total, term) => axpy(total, term, 1));
  const root = Math.fround(Math.sqrt(Math.fround(Math.abs(Math.fround(next) - Math.fround(sigma)))));
  return Tensor.from(
    sum.data.map((value) => value / (sigma < next ? root : -root)),
    shape,
  );
}

describe("brownianNoise", () => {
  it("equals the walk from the root for requests in any order and size of latent", () => {
    const falling = Array.from(KARRAS.slice(0, 5), (sigma, i) => [sigma, KARRAS[i + 1]!] as const);
    const others = [
      [2, 7],
      [7, 2],
      [0.5, 0.4],
      [MAX, MIN],
      [3, 3.000002],
      [2, 7],
    ] as const;
    for (const shape of [[1, 1, 3, 5], SHAPE, [2, 4, 24, 24]]) {
      const noise = brownianNoise(7n, KARRAS, shape);
      for (const pair of [...falling, ...others])
        assertSameBits(noise(...pair), walked(7n, pair, shape), `${shape}: ${pair}`);
    }
  });

  it("equals the walk along a path of more than 32 levels", () => {
    const [min, max] = [0.5, 65536.5];
    const noise = brownianNoise(9n, { min, max }, SHAPE);
    for (const [sigma, next] of [
      [65536.5, 40000.25],
      [40000.25, 1.000001],
    ] as const)
      assertSameBits(noise(sigma, next), walked(9n, [sigma, next], SHAPE, [min, max]), `${sigma}`);
  });

  it("takes the smallest positive and the largest sigma as the ends of the path", () => {
    const byEnds = brownianNoise(3n, { min: MIN, max: MAX }, SHAPE);
    const shuffled = brownianNoise(3n, Float32Array.of(0, 2, MIN, MAX, 5), SHAPE);
    assertSameBits(shuffled(5, 2), byEnds(5, 2));
    assertSameBits(brownianNoise(3n, KARRAS, SHAPE)(5, 2), byEnds(5, 2));
  });

  it("reads levels beyond the path as its ends", () => {
    const noise = brownianNoise(3n, KARRAS, SHAPE);
    assertSameBits(noise(20, 2), walked(3n, [20, 2], SHAPE));
    const [beyond, inside] = [noise(2, 0), noise(2, MIN)];
    const ratio = Math.sqrt((2 - MIN) / 2);
    beyond.data.forEach((value, i) => {
      assert.ok(Math.abs(value - inside.data[i]! * ratio) < 1e-5);
    });
  });

  it("has no noise if there is no way to go", () => {
    for (const [sigma, next] of [
      [2, 2],
      [2, 2.0000002],
      [MIN, 0],
      [30, 20],
    ] as const)
      assertSameBits(brownianNoise(1n, KARRAS, SHAPE)(sigma, next), Tensor.zeros(SHAPE));
    assertSameBits(brownianNoise(1n, Float32Array.of(0), SHAPE)(1, 0), Tensor.zeros(SHAPE));
    assert.equal(brownianNoise(1n, KARRAS, [0, 4, 8, 8])(5, 2).size, 0);
  });

  it("draws the same after its memory was released", () => {
    const noise = brownianNoise(3n, KARRAS, SHAPE);
    const before = noise(5, 2);
    noise.release();
    noise.release();
    assertSameBits(noise(5, 2), before);
    assertSameBits(noise(3, 2), walked(3n, [3, 2], SHAPE));
  });

  it("has the same bits with any number of threads, one that changes along a path among them", () => {
    const native = loadNative();
    const threads = native.threads();
    const shape = [1, 4, 64, 65];
    // the way down needs more rows than a path expects
    const span = { min: 1e-3, max: 1e8 };
    const ways = [
      [1e8, 5e7],
      [5e7, 0.002],
      [0.002, 0.0011],
    ] as const;
    const draw = (counts: readonly number[]): Tensor[] => {
      native.setThreads(counts[0]!);
      const noise = brownianNoise(5n, span, shape);
      return ways.map((way, i) => {
        native.setThreads(counts[i]!);
        return noise(way[0], way[1]);
      });
    };
    try {
      const alone = draw([1, 1, 1]);
      for (const [i, way] of ways.entries())
        assertSameBits(alone[i]!, walked(5n, way, shape, [span.min, span.max]), `${way}`);
      for (const counts of [
        [2, 2, 2],
        [3, 3, 3],
        [9, 9, 9],
        [2, 1, 4],
        [1, 5, 2],
      ])
        for (const [i, noise] of draw(counts).entries())
          assertSameBits(noise, alone[i]!, `${counts} threads, ${ways[i]}`);
    } finally {
      native.setThreads(threads);
    }
  });

  it("turns its sign with the direction", () => {
    const noise = brownianNoise(1n, KARRAS, SHAPE);
    assertSameBits(noise(5, 2), scale(noise(2, 5), -1));
  });

  it("spans levels from a millionth to the largest that it takes", () => {
    const noise = brownianNoise(1n, { min: 1e-6, max: 1e20 }, SHAPE);
    for (const [sigma, next] of [
      [1e20, 1],
      [1, 1e-6],
      [1e20, 5e19],
    ] as const)
      assert.ok(noise(sigma, next).data.every(Number.isFinite));
  });

  it("is normal with variance 1 over steps of any length", () => {
    const noise = brownianNoise(11n, KARRAS, [1, 4, 64, 64]);
    for (const [sigma, next] of [
      [MAX, 9],
      [1, 0.9],
      [0.05, 0.0499],
    ] as const) {
      const { data } = noise(sigma, next);
      const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
      const variance = data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length;
      assert.ok(Math.abs(mean) < 0.03 && Math.abs(variance - 1) < 0.05, `${sigma}: ${mean}, ${variance}`);
    }
  });

  it("refuses levels that are not numbers or too large, and shapes too large", () => {
    const fails = (code: string) => ({ name: "LatentkitError", code });
    assert.throws(() => brownianNoise(1n, Float32Array.of(1, Number.NaN), SHAPE), fails("value.out-of-range"));
    assert.throws(() => brownianNoise(1n, KARRAS, SHAPE)(Number.POSITIVE_INFINITY, 1), fails("value.out-of-range"));
    assert.throws(() => brownianNoise(1n, { min: 1, max: 1e21 }, SHAPE), fails("value.out-of-range"));
    assert.throws(() => brownianNoise(1n, KARRAS, [1, 4, 2 ** 20, 2 ** 20]), fails("tensor.too-large"));
  });
});
