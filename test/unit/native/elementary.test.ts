import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { atan, cos, exp, expm1, log, log1p, pow, sin, square, tan } from "#src/native/elementary.js";

const OF_ONE = { exp, expm1, log, log1p, sin, cos, tan, atan };

/** Arguments and the doubles nearest to the results, computed with 200 bits. */
const EXACT: Record<keyof typeof OF_ONE, readonly (readonly [x: number, y: number])[]> = {
  exp: [
    [0.5, 1.6487212707001282],
    [-7.25, 0.000710174388842549],
    [1e-9, 1.000000001],
    [700, 1.0142320547350045e304],
  ],
  expm1: [
    [1e-10, 1.00000000005e-10],
    [-0.3, -0.2591817793182821],
    [5, 147.4131591025766],
    [-40, -1],
  ],
  log: [
    [0.2, -1.6094379124341003],
    [2, Math.LN2],
    [14.614641, 2.6820238344572034],
    [1e-300, -690.7755278982137],
  ],
  log1p: [
    [1e-12, 9.999999999995e-13],
    [-0.75, -1.3862943611198906],
    [3, 1.3862943611198906],
    [1e9, 20.72326583794641],
  ],
  sin: [
    [1, 0.8414709848078965],
    [-3.1, -0.04158066243329049],
    [1e6, -0.34999350217129294],
    [1e-8, 1e-8],
  ],
  cos: [
    [1, 0.5403023058681398],
    [Math.PI / 2, 6.123233995736766e-17],
    [-100, 0.8623188722876839],
    [1e9, 0.8378871813639024],
  ],
  tan: [
    [0.7, 0.8422883804630794],
    [1.57, 1255.7655915007897],
    [-20, -2.237160944224742],
    [1e5, -0.035771662952898776],
  ],
  atan: [
    [0.3, 0.2914567944778671],
    [-1, -Math.PI / 4],
    [14.6, 1.5024099832043931],
    [1e12, 1.5707963267938967],
  ],
};

/** Distance of two doubles of one sign in representable values. */
function ulps(a: number, b: number): number {
  const [x, y] = new BigInt64Array(Float64Array.of(a, b).buffer);
  return Math.abs(Number(x! - y!));
}

describe("native/elementary", () => {
  for (const [name, call] of Object.entries(OF_ONE)) {
    it(`${name} is within a unit in the last place`, () => {
      for (const [x, exact] of EXACT[name as keyof typeof OF_ONE])
        assert.ok(ulps(call(x), exact) <= 1, `${name}(${x}) is ${call(x)}, not ${exact}`);
    });
  }

  it("pow is within a unit in the last place, square is rounded once", () => {
    assert.ok(ulps(pow(0.1, 0.3), 0.5011872336272724) <= 1);
    assert.ok(ulps(pow(14.614641, 1 / 7), 1.466892565115015) <= 1);
    assert.ok(ulps(pow(-1.7, 7), -41.03386729999999) <= 1);
    assert.ok(ulps(pow(1.0001, 10_000), 2.7181459268249255) <= 1);
    assert.equal(square(-0.1), 0.010000000000000002);
  });

  it("has the limits", () => {
    assert.deepEqual([exp(-Infinity), exp(Infinity), log(0), log(Infinity)], [0, Infinity, -Infinity, Infinity]);
    assert.deepEqual([log(-1), log1p(-2), pow(-1, 0.5), sin(Infinity), tan(NaN)], [NaN, NaN, NaN, NaN, NaN]);
    assert.deepEqual([pow(0, 0), pow(2, -1074), expm1(-Infinity), atan(-Infinity)], [1, 5e-324, -1, -Math.PI / 2]);
  });

  it("has the same bits on every machine and in every version of Node", () => {
    const hash = createHash("sha256");
    for (let i = 1; i <= 5000; i++) {
      const x = i / 157;
      const values = [exp(x - 16), expm1(x / 8 - 2), log(x), log1p(x - 0.006), pow(x, 0.3), pow(x, 7 - x / 3)];
      hash.update(Float64Array.of(...values, sin(x * x), cos(x * x), tan(x), atan(x - 9)));
    }
    assert.equal(hash.digest("hex"), "aa5e25029ba0ce274941fecd5a7bcf682bf027fcbe2c15b7f8b481ecfe687ce7");
  });
});
