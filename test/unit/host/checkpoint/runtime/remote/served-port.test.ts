import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { KeptInputs } from "#src/host/checkpoint/runtime/remote/served-port.js";
import { assertSame } from "../../../../../helpers/same.js";

describe("KeptInputs", () => {
  const tensor = () => Tensor.zeros([25]);

  it("returns what is gone for a new tensor: the least recently used beyond the bound, and its former one", () => {
    const kept = new KeptInputs(300);
    const [a, b, c, d, e] = [tensor(), tensor(), tensor(), tensor(), tensor()];
    for (const [number, each] of [a, b, c].entries()) assert.deepEqual(kept.add(number, each), []);
    assert.equal(kept.use(0), a);
    assertSame(kept.add(3, d), [b]);
    assert.equal(kept.use(1), undefined);
    assertSame(kept.add(3, e), [d]);
    assert.equal(kept.use(3), e);
    assertSame(kept.clear(), [c, a, e]);
    assert.equal(kept.use(0), undefined);
  });

  it("keeps a tensor that is larger than the bound as long as it is the last", () => {
    const kept = new KeptInputs(10);
    const [a, b] = [tensor(), tensor()];
    assert.deepEqual(kept.add(0, a), []);
    assert.equal(kept.use(0), a);
    assertSame(kept.add(1, b), [a]);
  });
});
