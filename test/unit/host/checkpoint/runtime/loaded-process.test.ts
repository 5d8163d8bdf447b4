import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { KeptValues } from "#src/host/checkpoint/runtime/loaded-process.js";

describe("KeptValues", () => {
  const four = () => Tensor.zeros([4]);

  it("knows a tensor by identity", () => {
    const kept = new KeptValues();
    const [a, b] = [four(), four()];
    kept.add(a, 7);
    assert.equal(kept.use(a), 7);
    assert.equal(kept.use(b), undefined);
  });

  it("gives up the least recently used beyond its bytes", () => {
    const kept = new KeptValues(32);
    const [a, b, c] = [four(), four(), four()];
    kept.add(a, 0);
    kept.add(b, 1);
    assert.deepEqual(kept.takeSurplus(), []);
    kept.use(a);
    kept.add(c, 2);
    assert.deepEqual(kept.takeSurplus(), [1]);
    assert.equal(kept.use(b), undefined);
    assert.equal(kept.use(a), 0);
    assert.deepEqual(kept.takeSurplus(), []);
  });
});
