import assert from "node:assert/strict";
import { inspect } from "node:util";
import { encodePng, invokeNode, LatentkitError, Tensor } from "latentkit";
import { refuses } from "../../helpers/errors.js";
import { fakeGpu, onFakeGpu } from "../../helpers/process/fake-gpu.js";

describe("Tensor", () => {
  it("takes a Float32Array over and copies anything else", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    assert.equal(Tensor.from(data, [2, 2]).data, data);
    assert.deepEqual([...Tensor.from([1, 2], [2]).data], [1, 2]);
  });

  it("copies memory that threads share, which the core does not read", async () => {
    const shared = new Float32Array(new SharedArrayBuffer(12)).fill(0.5);
    const tensor = Tensor.from(shared, [1, 1, 3]);
    shared.fill(0);
    assert.deepEqual([...tensor.data], [0.5, 0.5, 0.5]);
    assert.ok((await encodePng(tensor)).length > 0);
  });

  it("is named where it is of another copy of the package, or was sent from another thread", async () => {
    const sent = structuredClone(Tensor.full([1, 2, 2, 3], 0.5));
    const foreign = /received a tensor of shape \[1, 2, 2, 3\] of another copy of latentkit or another thread\.$/;
    await refuses(invokeNode("ext imageToMask", { image: sent, channel: "red" }), "input.wrong-type", foreign);
    await refuses(encodePng(sent), "value.invalid", foreign);
    const own = invokeNode("ext imageToMask", { image: Tensor.zeros([2, 3]), channel: "red" });
    await refuses(own, "input.wrong-type", /received a tensor of shape \[2, 3\]\.$/);
  });

  it("makes zeros, fills, clones and reshapes", () => {
    assert.deepEqual([...Tensor.zeros([2, 2]).data], [0, 0, 0, 0]);
    const full = Tensor.full([2, 3], 0.5);
    const copy = full.clone();
    copy.data[0] = 9;
    assert.equal(full.data[0], 0.5);
    assert.equal(full.reshape([3, 2]).data, full.data);
    assert.equal(full.size, 6);
    assert.deepEqual(Tensor.zeros([]).shape, []);
    assert.equal(Tensor.zeros([3, 0]).size, 0);
    assert.equal(Tensor.zeros([1e300, 1e300, 0]).size, 0);
  });

  it("is told apart by its values in deep comparisons", () => {
    assert.deepEqual(Tensor.from([1, 2], [2]), Tensor.from([1, 2], [2]));
    assert.notDeepEqual(Tensor.from([1, 2], [2]), Tensor.from([1, 3], [2]));
  });

  it("shows shape and range to console.log", () => {
    const shown = (values: number[], shape = [values.length]) => inspect(Tensor.from(values, shape));
    assert.equal(shown([-3.2123, 0, 3.4, 1], [1, 2, 2]), "Tensor [1, 2, 2] -3.212 … 3.4");
    assert.equal(shown([0.1, 0.1]), "Tensor [2] 0.1");
    assert.equal(shown([12345.678, 1e-9]), "Tensor [2] 1e-9 … 12350");
    assert.equal(shown([]), "Tensor [0] empty");
    assert.equal(shown([], [0, 4]), "Tensor [0, 4] empty");
    assert.equal(shown([5], []), "Tensor [] 5");
    assert.equal(shown([1, Number.NaN, 2]), "Tensor [3] 1 … 2, 1 NaN");
    assert.equal(shown([Number.NaN]), "Tensor [1] NaN");
    assert.equal(shown([Number.NEGATIVE_INFINITY, 2]), "Tensor [2] -Infinity … 2");
    assert.equal(inspect(Tensor.zeros([2 ** 22 + 1])), "Tensor [4194305] 4194305 values");
    assert.equal(inspect({ samples: Tensor.zeros([2]) }), "{ samples: Tensor [2] 0 }");
  });

  it("fetches no values for console.log", async () => {
    const program = `
      const { inspect } = await import("node:util");
      const there = ops.scale(Tensor.full([4], 3), 2);
      const before = inspect(there);
      send([before, there.isAway, there.data[0], inspect(there)]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu()), [["Tensor [4] on cuda:0", true, 6, "Tensor [4] 6"]]);
  });

  it("has no element unwritten if memory is not cleared", () => {
    const size = 100_003;
    const full = Tensor.full([size], 0.25);
    assert.ok(full.data.every((value) => value === 0.25));
    assert.deepEqual(full.clone().data, full.data);
    assert.equal(Tensor.unfilled([5, size]).size, 5 * size);
    assert.equal(full.data.buffer.byteLength, 4 * size);
  });

  it("keeps its shape if the caller's array changes later", () => {
    const shape = [2, 2];
    const tensor = Tensor.zeros(shape);
    shape[0] = 7;
    assert.deepEqual(tensor.shape, [2, 2]);
  });

  it("refuses data, shapes and sizes that do not fit", () => {
    const refuses = (call: () => unknown, pattern: RegExp): void => {
      assert.throws(call, (error: unknown) => error instanceof LatentkitError && pattern.test(error.message));
    };
    refuses(() => Tensor.from([1, 2, 3], [2, 2]), /expected 4 values for shape \[2, 2\], received 3/);
    refuses(() => Tensor.zeros([2, -1]), /whole numbers from 0, received -1/);
    refuses(() => Tensor.zeros(["2" as unknown as number]), /received "2"/);
    refuses(() => Tensor.zeros(5 as unknown as number[]), /a list of sizes, received 5/);
    refuses(() => Tensor.zeros([1e6, 1e6]), /at most 1073741824 elements, received 1000000000000/);
  });
});
