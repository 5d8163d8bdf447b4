import assert from "node:assert/strict";
import {
  addTo,
  amplitudesOf,
  basisOf,
  type Component,
  componentOf,
  dot,
  shiftOf,
  textureGain,
  weightsOf,
} from "#src/host/preview/mixture.js";

describe("the preview model's mixture", () => {
  const CELLS = 48;
  const plane = (at: (i: number) => number) => Float64Array.from({ length: CELLS }, (_, i) => at(i));
  const BASIS = basisOf([
    plane((i) => (i < 30 ? 1 : 0)),
    plane((i) => (i >= 30 ? 1 : 0)),
    plane((i) => (i % 7 === 0 ? 1 : 0)),
  ]);
  const OTHER = basisOf([
    plane((i) => (i < 18 ? 1 : 0)),
    plane((i) => (i >= 18 ? 1 : 0)),
    plane((i) => (i % 5 === 0 ? 1 : 0)),
  ]);
  const component = (basis: typeof BASIS, levels: readonly number[], spread = 1) =>
    componentOf(basis, [levels], spread);

  /** Mean of the clean latents of one channel. */
  function estimate(x: Float64Array, components: readonly Component[], sigma: number, keep = 1): Float64Array {
    const item = { values: x, starts: [0] };
    const amplitudes = components.map((one) => amplitudesOf(item, one));
    const weights = weightsOf(components, amplitudes, keep, sigma);
    const mean = x.map((value) => textureGain(keep, sigma) * value);
    for (const [k, one] of components.entries()) {
      const shift = shiftOf(one, 0, amplitudes[k]![0]!, keep, sigma);
      for (const [i, base] of one.basis.planes.entries()) addTo(mean, base, weights[k]! * shift[i]!);
    }
    return mean;
  }

  /** Amplitude by amplitude, and texture by texture: each is a Gaussian of its own. */
  function exactPath(start: Float64Array, { basis, centre, variance }: Component, first: number, last: number) {
    const ratioOf = (own: number) => Math.sqrt((own + last ** 2) / (own + first ** 2));
    const texture = ratioOf(textureVariance());
    const end = start.map((value) => texture * value);
    for (const [i, base] of basis.planes.entries()) {
      const [own] = amplitudesOf({ values: start, starts: [0] }, { basis } as Component) as [Float64Array];
      const middle = centre[0]![i]!;
      addTo(end, base, middle + (own[i]! - middle) * ratioOf(variance[i]!) - texture * own[i]!);
    }
    return end;
  }

  /** Variance of the texture, from its gain at a noise level of 1. */
  const textureVariance = (): number => textureGain(1, 1) / (1 - textureGain(1, 1));

  function heun(start: Float64Array, components: readonly Component[], first: number, last: number, steps: number) {
    const sigmas = Array.from({ length: steps + 1 }, (_, i) => first * (last / first) ** (i / steps));
    const slope = (x: Float64Array, sigma: number) => {
      const means = estimate(x, components, sigma);
      return x.map((value, i) => (value - means[i]!) / sigma);
    };
    let x = start;
    for (let i = 0; i < steps; i++) {
      const [sigma, next] = [sigmas[i]!, sigmas[i + 1]!];
      const here = slope(x, sigma);
      const ahead = x.map((value, k) => value + here[k]! * (next - sigma));
      const there = slope(ahead, next);
      x = x.map((value, k) => value + (0.5 * here[k]! + 0.5 * there[k]!) * (next - sigma));
    }
    return x;
  }

  /** Logarithm of the density of x = clean + sigma * noise, but for a constant. */
  function logDensity(x: Float64Array, components: readonly Component[], sigma: number): number {
    const texture = textureVariance() + sigma * sigma;
    const parts = components.map(({ basis, centre, variance }) => {
      const [own] = amplitudesOf({ values: x, starts: [0] }, { basis } as Component) as [Float64Array];
      let sum =
        -0.5 *
        ((x.reduce((all, value) => all + value * value, 0) - own.reduce((all, value) => all + value * value, 0)) /
          texture);
      for (const [i, value] of own.entries()) {
        const spread = variance[i]! + sigma * sigma;
        sum -= 0.5 * ((value - centre[0]![i]!) ** 2 / spread + Math.log(spread / texture));
      }
      return sum;
    });
    const most = Math.max(...parts);
    return most + Math.log(parts.reduce((sum, part) => sum + Math.exp(part - most), 0));
  }

  const one = component(BASIS, [0.8, -0.6, 0.3]);

  it("of one Gaussian lets Heun's method converge to the exact path at second order", () => {
    const [first, last] = [8, 0.05];
    const start = plane((i) => Math.cos(i) * first);
    const exact = exactPath(start, one, first, last);
    const errorOf = (steps: number): number => {
      const path = heun(start, [one], first, last, steps);
      return Math.max(...path.map((value, i) => Math.abs(value - exact[i]!)));
    };
    const [coarse, fine] = [errorOf(60), errorOf(120)];
    assert.ok(fine < 2e-2, String(fine));
    assert.ok(coarse / fine > 3.4 && coarse / fine < 4.7, String(coarse / fine));
  });

  it("returns x plus sigma squared times the slope of the logarithm of its density", () => {
    const both = [one, component(OTHER, [-0.5, 0.7, 0.2])];
    const [sigma, step] = [0.9, 1e-5];
    const x = plane((i) => Math.sin(i) / 2);
    const means = estimate(x, both, sigma);
    for (const at of [0, 1, 13, 47]) {
      const [up, below] = [x.slice(), x.slice()];
      up[at]! += step;
      below[at]! -= step;
      const slope = (logDensity(up, both, sigma) - logDensity(below, both, sigma)) / (2 * step);
      assert.ok(Math.abs(means[at]! - (x[at]! + sigma * sigma * slope)) < 1e-5, `cell ${at}`);
    }
  });

  it("is the nearer component's Gaussian if the other one is far", () => {
    const far = component(OTHER, [30, -30, 30]);
    const x = plane((i) => (i < 30 ? 0.8 : -0.6));
    assert.deepEqual(estimate(x, [one, far], 1), estimate(x, [one], 1));
  });

  it("is the latent itself without noise", () => {
    const x = plane((i) => Math.sin(i));
    for (const [i, value] of estimate(x, [one], 0).entries()) assert.ok(Math.abs(value - x[i]!) < 1e-12);
  });
});

describe("the basis of a landscape", () => {
  const plane = (at: (i: number) => number) => Float64Array.from({ length: 40 }, (_, i) => at(i));

  const spanned = [plane((i) => (i < 20 ? 1 : 0)), plane((i) => i / 40), plane((i) => (i * 7) % 5), plane(() => 0)];
  // one that depends on the others
  spanned.push(plane((i) => spanned[0]![i]! + 2 * spanned[1]![i]!));
  const { planes, amplitudes } = basisOf(spanned);

  it("is orthonormal, without planes that depend on others", () => {
    assert.equal(planes.length, 3);
    for (const [i, one] of planes.entries())
      for (const [k, other] of planes.entries()) assert.ok(Math.abs(dot(one, other) - Number(i === k)) < 1e-12);
  });

  it("has every plane that it was made of", () => {
    for (const [k, own] of spanned.entries()) {
      const again = plane((i) => planes.reduce((sum, base, b) => sum + base[i]! * amplitudes[k]![b]!, 0));
      for (const [i, value] of own.entries()) assert.ok(Math.abs(value - again[i]!) < 1e-12, `plane ${k}, cell ${i}`);
    }
  });
});
