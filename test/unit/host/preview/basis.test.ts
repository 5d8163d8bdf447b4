import assert from "node:assert/strict";
import { basisOf, dot } from "#src/host/preview/basis.js";

const plane = (at: (i: number) => number) => Float64Array.from({ length: 40 }, (_, i) => at(i));

describe("the basis of a landscape", () => {
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
