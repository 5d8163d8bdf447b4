import assert from "node:assert/strict";
import { LatentkitError, randn, Tensor } from "latentkit";
import { loadNative } from "#src/native/load.js";
import { latentToRgb } from "#src/tensor/latent-rgb.js";
import { LATENT_RGB } from "#src/tensor/sampling/latent-rgb.js";

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
