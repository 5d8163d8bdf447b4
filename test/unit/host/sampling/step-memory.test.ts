import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { Estimate } from "#src/host/sampling/solver.js";
import { StepMemory } from "#src/host/sampling/step-memory.js";
import { clearPool, pooledBytes } from "#src/tensor/memory-pool.js";

describe("StepMemory", () => {
  const latent = () => Tensor.zeros([1, 4, 2, 2]);

  it("lends the memory of tensors that are not kept, to tensors of their size", () => {
    const memory = new StepMemory();
    const [kept, read] = [memory.follow(latent()), memory.follow(latent())];
    assert.equal(memory.take(16), undefined);
    // a view keeps what it shares
    memory.keepOnly([kept.reshape([1, 16, 1, 1])]);
    assert.equal(memory.take(32), undefined);
    assert.equal(memory.take(16), read);
    assert.equal(memory.take(16), undefined);
    memory.keepOnly([]);
    assert.equal(memory.take(16), kept);
  });

  it("keeps what the reported estimate is, or is computed from, until the next report", () => {
    const memory = new StepMemory();
    const [tensor, part] = [memory.follow(latent()), memory.follow(latent())];
    memory.keepOnly([]);
    memory.report(tensor);
    assert.equal(memory.take(16), part);
    memory.follow(part);
    memory.keepOnly([]);
    memory.report(new Estimate([[2, part]]));
    assert.equal(memory.take(16), tensor);
    assert.equal(memory.take(16), undefined);
    memory.report(latent());
    assert.equal(memory.take(16), part);
  });

  it("gives nothing back that it has forgotten", () => {
    const memory = new StepMemory();
    const first = memory.follow(latent());
    memory.forget(first);
    memory.keepOnly([]);
    assert.equal(memory.take(16), undefined);
  });

  it("lets what is in use change, but for the reported estimate", () => {
    const memory = new StepMemory();
    const [used, reported, other] = [memory.follow(latent()), memory.follow(latent()), memory.follow(latent())];
    memory.report(new Estimate([[2, reported]]));
    memory.keepOnly([used, reported]);
    assert.deepEqual(
      [used, reported, other].map((tensor) => memory.mayChange(tensor.memory)),
      [true, false, false],
    );
  });

  it("returns the reported estimate to the pool if it is not kept", () => {
    for (const keepsEstimate of [true, false]) {
      clearPool();
      const memory = new StepMemory();
      const reported = memory.follow(Tensor.unfilled([1, 4, 64, 64]));
      memory.follow(Tensor.unfilled([1, 4, 64, 64]));
      memory.report(reported);
      memory.release(keepsEstimate);
      assert.equal(pooledBytes(), (keepsEstimate ? 1 : 2) * 4 * 4 * 64 * 64);
    }
  });

  it("follows the last tensors of a solver that keeps none", () => {
    const memory = new StepMemory();
    const made = Array.from({ length: 40 }, () => memory.follow(latent()));
    memory.keepOnly([]);
    const taken = new Set(Array.from({ length: 40 }, () => memory.take(16)));
    assert.deepEqual(taken, new Set([...made.slice(8), undefined]));
  });
});
