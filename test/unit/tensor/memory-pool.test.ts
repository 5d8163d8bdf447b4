import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { clearPool, pooledBytes, returnMemory, takeMemory } from "#src/tensor/memory-pool.js";

const MIB = 2 ** 20;

describe("tensor/memory-pool", () => {
  beforeEach(clearPool);
  after(clearPool);

  it("returns the buffer of this length that came back last", () => {
    const [first, second] = [takeMemory(MIB), takeMemory(MIB)];
    returnMemory(first);
    returnMemory(second);
    assert.equal(pooledBytes(), 2 * MIB);
    assert.notEqual(takeMemory(2 * MIB), second);
    assert.equal(takeMemory(MIB), second);
    assert.equal(takeMemory(MIB), first);
    assert.equal(pooledBytes(), 0);
  });

  it("accepts no buffer twice, and no foreign buffer", () => {
    const mine = takeMemory(MIB);
    returnMemory(mine);
    returnMemory(mine);
    returnMemory(new ArrayBuffer(MIB));
    returnMemory(Tensor.from(new Float32Array(MIB), [MIB]).data.buffer);
    assert.equal(pooledBytes(), MIB);
  });

  it("drops detached buffers, and keeps at most 64 MiB", () => {
    const sent = takeMemory(MIB);
    structuredClone(sent, { transfer: [sent] });
    returnMemory(sent);
    assert.equal(pooledBytes(), 0);
    for (const memory of Array.from({ length: 5 }, () => takeMemory(20 * MIB))) returnMemory(memory);
    assert.ok(pooledBytes() <= 64 * MIB, `${pooledBytes()}`);
    returnMemory(takeMemory(40 * MIB));
    assert.ok(pooledBytes() <= 64 * MIB);
  });
});
