import assert from "node:assert/strict";
import { LatentkitError, randn, Tensor } from "latentkit";
import { loadNative } from "#src/native/load.js";
import { addMasked, latentToRgb } from "#src/tensor/latents.js";
import { LATENT_RGB } from "#src/tensor/sampling/latent-format.js";
import { assertSameBits } from "../../helpers/tensor/bits.js";

const f = Math.fround;
const at = (x: Tensor, ...position: number[]): number =>
  x.data[position.reduce((index, side, axis) => index * x.shape[axis]! + side, 0)]!;

describe("addMasked", () => {
  const destination = randn([2, 3, 7, 9], { seed: 1n });
  const source = randn([2, 3, 4, 5], { seed: 2n });

  it("addMasked adds source * mask within the area and nothing outside it", () => {
    for (const masks of [1, 2]) {
      const mask = randn([masks, 4, 5], { seed: 3n });
      const sum = addMasked(destination, source, mask, 2, 4);
      for (let b = 0; b < 2; b++) {
        for (let c = 0; c < 3; c++) {
          for (let y = 0; y < 7; y++) {
            for (let x = 0; x < 9; x++) {
              const before = at(destination, b, c, y, x);
              const inside = y >= 2 && y < 6 && x >= 4;
              const product = inside ? f(at(source, b, c, y - 2, x - 4) * at(mask, b % masks, y - 2, x - 4)) : 0;
              assert.equal(at(sum, b, c, y, x), inside ? f(before + product) : before);
            }
          }
        }
      }
    }
  });

  it("addMasked leaves the destination alone unless out is the destination", () => {
    const own = destination.clone();
    const mask = Tensor.full([4, 5], 0.5);
    const sum = addMasked(own, source, mask, 0, 0);
    assertSameBits(own, destination);
    assert.equal(addMasked(own, source, mask, 0, 0, own), own);
    assertSameBits(own, sum);
    assert.throws(() => addMasked(own, source, mask, 0, 0, Tensor.zeros([3])), { code: "tensor.bad-shape" });
    assert.throws(() => addMasked(own, own, Tensor.full([7, 9], 1), 0, 0, own), RangeError);
  });

  it("areas that reach outside and shapes that do not fit are refused", () => {
    const mask = Tensor.full([4, 5], 1);
    const refuses = (call: () => unknown, message: RegExp): void => {
      assert.throws(call, { code: "tensor.bad-shape", message });
    };
    for (const [y, x] of [
      [4, 0],
      [0, 5],
      [-1, 0],
      [0, -1],
      [0.5, 0],
      [0, Number.NaN],
    ] as const) {
      refuses(
        () => addMasked(destination, source, mask, y, x),
        /addMasked area: expected one within 7 rows and 9 columns/,
      );
    }
    refuses(() => addMasked(destination, Tensor.zeros([2, 3, 1, 1]), mask, 0, 0), /expected a mask \[1 or 2, 1, 1\]/);
    refuses(() => addMasked(destination, source, Tensor.full([3, 4, 5], 1), 0, 0), /expected a mask \[1 or 2, 4, 5\]/);
    refuses(() => addMasked(destination, Tensor.zeros([1, 3, 4, 5]), mask, 0, 0), /expected a source \[2, 3, h, w\]/);
    refuses(() => addMasked(destination, Tensor.zeros([2, 1, 4, 5]), mask, 0, 0), /expected a source \[2, 3, h, w\]/);
  });
});

const native = loadNative();

describe("latentToRgb", () => {
  const best = native.isa();
  afterEach(() => native.setIsa(best));

  for (const isa of native.isas()) {
    it(`adds up the channels in double, in their order, with ${isa}`, () => {
      native.setIsa(isa);
      for (const { format, factors, bias } of LATENT_RGB) {
        const latent = randn([2, format.channels, 5, 9], { seed: 11n });
        const [plane, expected] = [45, Tensor.zeros([2, 3, 5, 9])];
        for (let i = 0; i < expected.size; i++) {
          const [item, colour, cell] = [Math.floor(i / plane / 3), Math.floor(i / plane) % 3, i % plane];
          let value = bias[colour]!;
          for (const [channel, weights] of factors.entries()) {
            const seen = latent.data[(item * format.channels + channel) * plane + cell]! - format.shiftFactor;
            value += seen * format.scaleFactor * weights[colour]!;
          }
          expected.data[i] = (value + 1) / 2;
        }
        const colours = latentToRgb(latent, format, Float64Array.from(factors.flat()), Float64Array.from(bias));
        assert.deepEqual(colours.shape, expected.shape);
        assert.deepEqual(colours.data, expected.data, format.name);
      }
    });
  }

  it("refuses what does not fit", () => {
    const [{ format }] = LATENT_RGB as [(typeof LATENT_RGB)[0]];
    const [factors, bias] = [new Float64Array(12), new Float64Array(3)];
    const latent = Tensor.zeros([1, 4, 2, 2]);
    assert.throws(() => latentToRgb(Tensor.zeros([4, 2, 2]), format, factors, bias), LatentkitError);
    const refuses = (weights: unknown, start: unknown, message: RegExp): void => {
      assert.throws(() => latentToRgb(latent, format, weights as Float64Array, start as Float64Array), { message });
    };
    refuses(new Float64Array(9), bias, /"x": expected 12 elements, received 16/);
    refuses(new Float64Array(11), bias, /"factors": expected 9 elements, received 11/);
    refuses(factors, new Float64Array(6), /"bias": expected 3 elements, received 6/);
    refuses(new Float32Array(12), bias, /"factors": expected a Float64Array/);
    refuses(factors, [0, 0, 0], /"bias": expected a Float64Array/);
    const into = (out: Float32Array) => native.latentToRgb(out, latent.data, 1, factors, bias, 0, 1);
    assert.throws(() => into(new Float32Array(11)), { message: /"out": expected 9 elements, received 11/ });
    assert.throws(() => into(latent.data.subarray(0, 12)), { message: /"x": expected memory separate/ });
  });
});
