import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { forgetMemory, giveMemory, takeMemory, waitingMemory } from "#src/tensor/memory.js";

const MIB = 2 ** 20;

describe("tensor/memory", () => {
  beforeEach(forgetMemory);
  after(forgetMemory);

  it("hands out what came back last, to those who need as much", () => {
    const [first, second] = [takeMemory(MIB), takeMemory(MIB)];
    giveMemory(first);
    giveMemory(second);
    assert.equal(waitingMemory(), 2 * MIB);
    assert.notEqual(takeMemory(2 * MIB), second);
    assert.equal(takeMemory(MIB), second);
    assert.equal(takeMemory(MIB), first);
    assert.equal(waitingMemory(), 0);
  });

  it("takes nothing back twice, and nothing that it did not hand out", () => {
    const mine = takeMemory(MIB);
    giveMemory(mine);
    giveMemory(mine);
    giveMemory(new ArrayBuffer(MIB));
    giveMemory(Tensor.from(new Float32Array(MIB), [MIB]).data.buffer);
    assert.equal(waitingMemory(), MIB);
  });

  it("lets go of memory that was sent to another thread, and of more than 64 MiB", () => {
    const sent = takeMemory(MIB);
    structuredClone(sent, { transfer: [sent] });
    giveMemory(sent);
    assert.equal(waitingMemory(), 0);
    for (const memory of Array.from({ length: 5 }, () => takeMemory(20 * MIB))) giveMemory(memory);
    assert.ok(waitingMemory() <= 64 * MIB, `${waitingMemory()}`);
    giveMemory(takeMemory(40 * MIB));
    assert.ok(waitingMemory() <= 64 * MIB);
  });
});
