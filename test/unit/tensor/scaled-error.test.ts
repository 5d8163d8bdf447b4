import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { scaledError } from "#src/tensor/scaled-error.js";

const row = (...values: number[]) => Tensor.from(values, [1, values.length]);

describe("scaledError", () => {
  it("takes the larger of the absolute and the relative tolerance, value by value", () => {
    const error = scaledError(row(1, 0, 10), row(1.5, 0.25, 8), row(0, 0, -20), 0.5, 0.1);
    assert.equal(error, Math.sqrt((1 + 0.25 + 1) / 3));
  });

  it("equal solutions have no error; NaN and no tolerance at all give NaN", () => {
    assert.equal(scaledError(row(1, 2), row(1, 2), row(0, 0), 0.1, 0.1), 0);
    assert.ok(Number.isNaN(scaledError(row(1, Number.NaN), row(1, 2), row(0, 0), 0.1, 0.1)));
    assert.ok(Number.isNaN(scaledError(row(1), row(1), row(1), 0, 0)));
  });
});
