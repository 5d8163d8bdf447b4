import assert from "node:assert/strict";
import { measure } from "#src/graph/memory/footprint.js";
import { Tensor } from "#src/tensor/tensor.js";

const bytesOf = (value: unknown) => measure(value).buffers.reduce((sum, { byteLength }) => sum + byteLength, 0);

describe("measure", () => {
  it("finds every buffer once, however deep and often it is held", () => {
    const tensor = Tensor.zeros([100]);
    const value = { a: [tensor, { b: tensor.reshape([10, 10]) }], m: new Map([["k", new Set([tensor.data])]]), n: 5 };
    assert.equal(bytesOf(value), 400);
    assert.equal(bytesOf([tensor, Buffer.alloc(100_000), new ArrayBuffer(8)]), 400 + 100_000 + 8);
    const cyclic: unknown[] = [tensor];
    cyclic.push(cyclic);
    assert.equal(bytesOf(cyclic), 400);
  });

  it("counts texts, and stops after a bounded number of values", () => {
    assert.ok(measure("x".repeat(1000)).otherBytes >= 2000);
    assert.ok(measure(Array.from({ length: 1_000_000 }, (_, i) => [i])).otherBytes < 10_000_000);
    assert.deepEqual(
      measure(
        new (class Secret {
          readonly inner = Tensor.zeros([5]);
        })(),
      ).buffers,
      [],
    );
  });
});
