import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LatentkitError, randn, Tensor } from "latentkit";
import * as ops from "#src/tensor/ops.js";
import { repeated } from "#src/tensor/parts.js";
import { root } from "../../helpers/folders.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

const f = Math.fround;
const noise = (shape: number[], seed: number): Tensor => randn(shape, { seed });
/** Sizes around every vector width, and one above the limit from which work is split. */
const SIZES = [0, 1, 7, 8, 15, 16, 17, 63, 65, 4097, 70_001];

describe("tensor ops", () => {
  it("are all called here", () => {
    const text = readFileSync(join(root, "test/unit/tensor/ops.test.ts"), "utf8");
    const uncalled = Object.keys(ops).filter((name) => !text.includes(`ops.${name}(`));
    assert.deepEqual(uncalled, []);
  });

  it("round once for each operation", () => {
    for (const size of SIZES) {
      const x = noise([size], 1);
      const y = noise([size], 2);
      const each = (what: string, got: Tensor, expected: (a: number, b: number) => number): void => {
        got.data.forEach((value, i) => {
          if (value !== expected(x.data[i]!, y.data[i]!)) assert.fail(`${what} of ${size} differs at ${i}`);
        });
      };
      each("scale", ops.scale(x, 0.1), (a) => f(a * f(0.1)));
      each("axpy", ops.axpy(x, y, 0.3), (a, b) => f(a + f(b * f(0.3))));
      each("average", ops.average(x, y), (a, b) => f(f(a + b) / 2));
      each("lerp", ops.lerp(x, y, 0.7), (a, b) => f(a + f(f(b - a) * f(0.7))));
    }
  });

  it("add up with coefficients that are doubles, once or several times", () => {
    const [j, k] = [1 - 7.3, 7.3];
    for (const size of SIZES) {
      const [x, y] = [noise([1, size], 1), noise([1, size], 2)];
      const terms = [
        [j, x],
        [k, y],
        [-1 / 3, x],
      ] as const;
      const sum = ops.weightedSum(terms);
      sum.data.forEach((value, i) => {
        const [a, b] = [x.data[i]!, y.data[i]!];
        // three roundings of at most the largest partial sum
        const most = Math.max(Math.abs(j * a), Math.abs(j * a + k * b)) + Math.abs(a / 3);
        assert.ok(Math.abs(value - (j * a + k * b - a / 3)) <= 3 * most * 2 ** -24, `${size} at ${i}`);
      });
      const twice = ops.repeatedSum(terms, 2);
      assert.deepEqual(twice.shape, [2, size]);
      assertSameBits(twice, repeated(sum, 2));
      const out = Tensor.zeros([2, size]);
      assert.equal(ops.repeatedSum(terms, 2, out), out);
      assertSameBits(out, twice);
      const own = repeated(x, 2);
      const first = own.part(0, x);
      ops.repeatedSum([[j, first], terms[1], [-1 / 3, first]], 2, own);
      assertSameBits(own, twice);
    }
    // float32 coefficients would give 2^24 / 3 rounded twice
    assert.equal(ops.weightedSum([[1 / 3, Tensor.full([1], 2 ** 24)]]).data[0], f(2 ** 24 / 3));
    const [batch, item] = [Tensor.zeros([2, 8]), Tensor.zeros([1, 8])];
    for (const from of [1, 8]) {
      assert.throws(() => ops.repeatedSum([[2, batch.part(from, item)]], 2, batch), /separate from the output/);
    }
    assert.throws(() => ops.repeatedSum([], 2), { code: "value.invalid" });
    assert.throws(() => ops.repeatedSum([[1, Tensor.full([], 1)]], 2), { code: "tensor.bad-shape" });
  });

  it("repeat a batch, and read one item of it as bytes", () => {
    const x = noise([2, 1, 3, 1], 1);
    const twice = repeated(x, 2);
    assert.deepEqual(twice.shape, [4, 1, 3, 1]);
    assert.deepEqual([...twice.data], [...x.data, ...x.data]);
    assert.deepEqual([...ops.itemToBytes(twice, 3)], [...ops.toBytes(x)].slice(3));
    const deep = Tensor.from([0, 0, 0, 1, 0.5, 1 / 65535], [2, 3]);
    assert.deepEqual([...ops.itemToUint16(deep, 1)], [255, 255, 128, 0, 0, 1]);
  });

  it("do not change their inputs", () => {
    const x = noise([33], 1);
    const before = x.data.slice();
    ops.scale(x, 2);
    ops.axpy(x, x, 2);
    ops.std(x);
    assert.deepEqual(x.data, before);
  });

  it("write into out if given, with the same bits, over an input too", () => {
    const shape = [2, 4, 9, 7];
    const [a, b, random] = [noise(shape, 1), noise(shape, 2), noise(shape, 3)];
    const mask = Tensor.full([1, 5, 5], 0.3);
    const image = noise([2, 9, 7, 3], 4);
    const planes = noise([2, 3, 9, 7], 5);
    const each: [what: string, run: (out?: Tensor) => Tensor, takesInput: boolean][] = [
      ["scale", (out) => ops.scale(a, 0.1, out), true],
      ["axpy", (out) => ops.axpy(a, b, 0.3, out), true],
      ["average", (out) => ops.average(a, b, out), true],
      ["lerp", (out) => ops.lerp(a, b, 0.7, out), true],
      [
        "weightedSum",
        (out) => {
          const terms: ops.Term[] = [
            [2, b],
            [1 / 3, a],
            [-0.1, random],
            [7, b],
            [-1.5, a],
          ];
          return ops.weightedSum(terms, out);
        },
        true,
      ],
      ["resizeBilinear", (out) => ops.resizeBilinear(a, 5, 3, out), false],
      ["maskedBlend", (out) => ops.maskedBlend(a, b, mask, out), true],
      ["composite", (out) => ops.composite(a, b, 2, 3, undefined, out), true],
      ["composite, mask", (out) => ops.composite(a, b, 1, 1, Tensor.full([1, 9, 7], 0.3), out), true],
      ["injectNoise", (out) => ops.injectNoise(a, b, { strength: 0.2, mask, mix: 0.1, random }, out), true],
      ["planesToImage", (out) => ops.planesToImage(planes, out), false],
      ["channelToMask", (out) => ops.channelToMask(image, 1, out), false],
      [
        "fromBytes",
        (out) =>
          ops.fromBytes(
            Uint8Array.from(a.data, (_, i) => i),
            shape,
            out,
          ),
        false,
      ],
    ];
    const before = a.data.slice();
    for (const [what, run, takesInput] of each) {
      const expected = run();
      const out = Tensor.full(expected.shape, Number.NaN);
      assert.equal(run(out), out, what);
      assert.deepEqual(out.data, expected.data, what);
      assert.throws(() => run(Tensor.zeros([3])), { code: "tensor.bad-shape" }, what);
      if (!takesInput) continue;
      assert.deepEqual(run(a).data, expected.data, `${what}, in place`);
      a.data.set(before);
    }
    const bytes = new Uint8Array(a.size);
    assert.equal(ops.toBytes(a, bytes), bytes);
    assert.deepEqual(bytes, ops.toBytes(a));
    assert.throws(() => ops.toBytes(a, new Uint8Array(3)), RangeError);
  });

  it("std is the unbiased deviation of all elements", () => {
    const x = noise([100_003], 4);
    const mean = x.data.reduce((sum, v) => sum + v, 0) / x.size;
    const squares = x.data.reduce((sum, v) => sum + (v - mean) ** 2, 0);
    assert.ok(Math.abs(ops.std(x) - Math.sqrt(squares / (x.size - 1))) < 1e-6);
    assert.equal(ops.std(Tensor.from([1, 3], [2])), f(Math.SQRT2));
    assert.ok(Number.isNaN(ops.std(Tensor.from([1], [1]))));
  });

  it("scaledError is the root of the mean of the scaled squares", () => {
    const size = 5003;
    const [low, high, previous] = [noise([size], 1), noise([size], 2), noise([size], 3)];
    const [atol, rtol] = [0.0078, 0.05];
    let squares = 0;
    for (let i = 0; i < size; i++) {
      const scale = Math.max(atol, rtol * Math.max(Math.abs(low.data[i]!), Math.abs(previous.data[i]!)));
      squares += ((low.data[i]! - high.data[i]!) / scale) ** 2;
    }
    const expected = Math.sqrt(squares / size);
    const norm = ops.scaledError(low, high, previous, atol, rtol);
    assert.ok(Math.abs(norm - expected) < 1e-12 * expected, `${norm}, not ${expected}`);
    assert.ok(Number.isNaN(ops.scaledError(Tensor.zeros([0]), Tensor.zeros([0]), Tensor.zeros([0]), 1, 1)));
  });

  it("resizeBilinear keeps a constant, a same-size image and the half-pixel centres", () => {
    const x = noise([2, 3, 5], 5);
    assert.deepEqual(ops.resizeBilinear(x, 3, 5).data, x.data);
    assert.ok(ops.resizeBilinear(Tensor.full([1, 4, 4], 0.25), 9, 3).data.every((v) => v === 0.25));
    assert.deepEqual([...ops.resizeBilinear(Tensor.from([0, 1], [1, 1, 2]), 1, 4).data], [0, 0.25, 0.75, 1]);
    assert.deepEqual(ops.resizeBilinear(x, 6, 7).shape, [2, 6, 7]);
  });

  it("maskedBlend repeats the mask over channels and batch and resizes it", () => {
    const a = noise([2, 3, 4, 4], 6);
    const b = noise([2, 3, 4, 4], 7);
    assert.deepEqual(ops.maskedBlend(a, b, Tensor.full([1, 4, 4], 1)).data, a.data);
    assert.deepEqual(ops.maskedBlend(a, b, Tensor.zeros([2, 2])).data, b.data);
    const half = ops.maskedBlend(a, b, Tensor.full([1, 9, 9], 0.5));
    half.data.forEach((v, i) => {
      assert.equal(v, f(f(0.5 * a.data[i]!) + f(0.5 * b.data[i]!)));
    });
  });

  it("composite pastes exact values, crops, repeats batches and channels", () => {
    const destination = Tensor.full([2, 2, 3, 3], Number.NaN);
    const out = ops.composite(destination, Tensor.from([1, 2, 3, 4], [1, 1, 2, 2]), 2, 1);
    const picture = [...out.data.slice(9, 18)];
    assert.deepEqual(picture, [NaN, NaN, NaN, NaN, NaN, 1, NaN, NaN, 3]);
    assert.ok(destination.data.every(Number.isNaN), "the destination is not changed");
    const masked = ops.composite(
      Tensor.zeros([1, 1, 1, 2]),
      Tensor.full([1, 1, 1, 2], 4),
      0,
      0,
      Tensor.from([0.25, 1], [1, 1, 2]),
    );
    assert.deepEqual([...masked.data], [1, 4]);
    assert.deepEqual(ops.composite(masked, Tensor.full([1, 1, 5, 5], 9), -10, 7).data, masked.data);
  });

  it("bytes are clipped and truncated, and NaN is 0", () => {
    const values = [0, 1, 0.5, 0.999, -1, 2, Number.NaN, Infinity, -Infinity, 1 / 255, 254.99 / 255];
    const x = Tensor.from(values, [values.length]);
    assert.deepEqual([...ops.toBytes(x)], [0, 255, 127, 254, 0, 255, 0, 255, 0, 1, 254]);
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    const back = ops.fromBytes(all, [256]);
    back.data.forEach((v, i) => {
      assert.equal(v, f(i / 255));
    });
    assert.deepEqual(ops.toBytes(back), all);
  });

  it("resizeToImage is both of its steps", () => {
    for (const [batch, height, width] of [
      [1, 64, 48],
      [2, 7, 90],
      [1, 1, 1],
    ] as const) {
      const small = randn([batch, 3, 6, 5], { seed: 3n });
      const steps = ops.planesToImage(ops.resizeBilinear(small, height, width));
      const image = ops.resizeToImage(small, height, width);
      assert.deepEqual(image.shape, [batch, height, width, 3]);
      assert.deepEqual(image.data, steps.data);
    }
  });

  it("refuse shapes that do not fit", () => {
    const x = Tensor.zeros([1, 4, 2, 2]);
    const refuses = (call: () => unknown, pattern: RegExp): void => {
      assert.throws(call, (error: unknown) => error instanceof LatentkitError && pattern.test(error.message));
    };
    refuses(() => ops.axpy(x, Tensor.zeros([16]), 1), /equal shapes, received \[1, 4, 2, 2\] and \[16\]/);
    refuses(() => ops.weightedSum([]), /weightedSum: expected 1 to 8 terms, received 0/);
    refuses(() => ops.weightedSum(Array.from({ length: 9 }, () => [1, x] as const)), /received 9/);
    const unequal = [
      [1, x],
      [1, Tensor.zeros([2])],
    ] as const;
    refuses(() => ops.weightedSum(unequal), /weightedSum: expected equal shapes/);
    refuses(() => ops.scaledError(x, Tensor.zeros([2]), x, 1, 1), /scaledError: expected equal shapes/);
    refuses(() => ops.scaledError(x, x, Tensor.zeros([2]), 1, 1), /scaledError: expected equal shapes/);
    refuses(() => ops.composite(x, Tensor.zeros([1, 3, 2, 2])), /a source with 4 channels or 1, received 3/);
    refuses(() => ops.composite(x, Tensor.zeros([0, 4, 2, 2])), /at least one item/);
    refuses(() => ops.planesToImage(Tensor.zeros([1, 4, 2, 2])), /planesToImage: expected 3 channels, received 4/);
    refuses(
      () => ops.resizeToImage(Tensor.zeros([1, 4, 2, 2]), 4, 4),
      /resizeToImage: expected 3 channels, received 4/,
    );
    refuses(() => ops.channelToMask(Tensor.zeros([1, 2, 2, 5]), 0), /1, 3 or 4 channels, received 5/);
    refuses(
      () => ops.maskedBlend(Tensor.zeros([4]), Tensor.zeros([4]), x),
      /a tensor \[B, C, H, W\], received shape \[4\]/,
    );
    refuses(
      () => ops.injectNoise(Tensor.full([1, 4, 2, 2], 1), x, { strength: 0, normalize: true }),
      /all values are equal \(standard deviation 0\)/,
    );
  });
});
