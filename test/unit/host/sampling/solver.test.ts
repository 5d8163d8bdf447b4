import assert from "node:assert/strict";
import { randn, Tensor } from "latentkit";
import { Estimate, flatTerms, isRepeatable, repeatedSumOf, sumOf, tensorOf } from "#src/host/sampling/solver.js";
import { type Term, weightedSum } from "#src/tensor/ops.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";

describe("sums of latents", () => {
  const SHAPE = [2, 4, 3, 5];
  // in the processor's memory, whichever device computes
  const latent = (seed: number): Tensor => Tensor.from(randn(SHAPE, { seed }).data, SHAPE);
  const [a, b, c] = [latent(1), latent(2), latent(3)];
  const guided = new Estimate([
    [7.5, b],
    [-6.5, c],
  ]);

  it("add the terms of an estimate, whether its tensor has been read or not", () => {
    const terms = [
      [0.9, a],
      [0.1, guided],
    ] as const;
    const before = sumOf(terms);
    assertSameBits(
      guided.tensor,
      weightedSum([
        [7.5, b],
        [-6.5, c],
      ]),
    );
    assert.equal(guided.tensor, tensorOf(guided));
    assertSameBits(sumOf(terms), before);
    assertSameBits(
      before,
      weightedSum([
        [0.9, a],
        [0.1 * 7.5, b],
        [0.1 * -6.5, c],
      ]),
    );
  });

  it("of one term with coefficient 1 are that tensor", () => {
    assert.equal(sumOf([[1, a]]), a);
    assert.equal(sumOf([[1, new Estimate([[1, a]])]]), a);
    assert.equal(new Estimate([[1, a]]).tensor, a);
    assert.equal(tensorOf(a), a);
    assert.equal(isRepeatable([[1, a]]), false);
    assert.equal(isRepeatable([[0.5, a]]), true);
  });

  it("take more terms than one pass does", () => {
    const terms = Array.from({ length: 17 }, (_, i): Term => [1 + i / 8, latent(i)]);
    const sum = sumOf(terms);
    sum.data.forEach((value, i) => {
      const exact = terms.reduce((all, [coefficient, x]) => all + coefficient * x.data[i]!, 0);
      assert.ok(Math.abs(value - exact) < 1e-5, `${i}: ${value}, not ${exact}`);
    });
    assert.equal(isRepeatable(terms.slice(0, 8)), true);
    assert.equal(isRepeatable(terms.slice(0, 9)), false);
  });

  it("repeat as one batch, whose first items are the sum", () => {
    const terms = flatTerms([
      [0.3, a],
      [0.7, guided],
    ]);
    const out = Tensor.zeros([6, 4, 3, 5]);
    for (const repeated of [repeatedSumOf(terms, 3), repeatedSumOf(terms, 3, out)]) {
      const { batch, first } = repeated;
      assert.deepEqual(batch.shape, [6, 4, 3, 5]);
      assert.deepEqual(first.shape, SHAPE);
      assert.equal(first.data.buffer, batch.data.buffer);
      const sum = sumOf(terms);
      for (let at = 0; at < 3; at++) assertSameBits(batch.part(at * a.size, a), sum);
    }
    assertSameBits(repeatedSumOf(terms, 3).batch, out);
  });
});
