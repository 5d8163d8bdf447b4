import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { besideEachOther, combined } from "#src/nodes/ipadapter/embeds.js";
import { withLast } from "#src/tensor/parts.js";
import { refuses } from "../../../helpers/errors.js";

const pictures = Tensor.from([3, 4, 1, -4], [2, 2]);
const values = (x: Tensor): number[] => [...x.data];

describe("combined", () => {
  it("makes one embedding of several, element by element", () => {
    assert.equal(combined(pictures, "concat"), pictures);
    assert.deepEqual(values(combined(pictures, "add")), [4, 0]);
    assert.deepEqual(values(combined(pictures, "subtract")), [2, 8]);
    assert.deepEqual(values(combined(pictures, "average")), [2, 0]);
    assert.deepEqual(values(combined(pictures, "max")), [3, 4]);
    assert.deepEqual(values(combined(pictures, "min")), [1, -4]);
    assert.deepEqual([...combined(pictures, "add").shape], [1, 2]);
  });

  it("takes the norm over the pictures, so that equal ones have 1 / sqrt 2, and zeros stay", () => {
    const same = Tensor.from([3, 0, 3, 0], [2, 2]);
    const [first, second] = values(combined(same, "norm average"));
    assert.ok(Math.abs(first! - Math.SQRT1_2) < 1e-7);
    assert.equal(second, 0);
  });

  it("subtracts the mean of all others", () => {
    assert.deepEqual(values(combined(Tensor.from([5, 1, 3], [3, 1]), "subtract")), [3]);
  });
});

describe("embeddings of several batches", () => {
  it("stand beside each other if they are equally wide", async () => {
    assert.deepEqual(values(besideEachOther([pictures, Tensor.from([7, 8], [1, 2])])), [3, 4, 1, -4, 7, 8]);
    const other = () => besideEachOther([pictures, Tensor.zeros([1, 3])]);
    await refuses(other, "value.invalid", /^input "embed2": expected embeddings as wide as the first ones/);
  });

  it("repeat the last one, or lose it, for a number", () => {
    assert.deepEqual(values(withLast(pictures, 3)), [3, 4, 1, -4, 1, -4]);
    assert.deepEqual(values(withLast(pictures, 1)), [3, 4]);
  });
});
