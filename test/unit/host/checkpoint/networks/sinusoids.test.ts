import assert from "node:assert/strict";
import { rotationTables, sinusoids, TIME_EMBEDDING, timeEmbeddings } from "#src/host/checkpoint/networks/sinusoids.js";
import { flowLayers } from "../../../../helpers/models/golden-flow.js";

describe("timeEmbeddings", () => {
  it("are sinusoids of each time but for one frequency, whose last bit is PyTorch's", () => {
    const times = [0, 17.5, 30_000];
    const { data, shape } = timeEmbeddings(times);
    assert.deepEqual(shape, [3, TIME_EMBEDDING]);
    for (const [row, time] of times.entries()) {
      const own = [...data.subarray(row * TIME_EMBEDDING, (row + 1) * TIME_EMBEDDING)];
      const others = Array.from(sinusoids(time, TIME_EMBEDDING), Math.fround);
      const different = own.flatMap((value, i) => (value === others[i] ? [] : [i]));
      assert.deepEqual(different, time === 0 ? [] : [12, 12 + TIME_EMBEDDING / 2]);
    }
  });
});

describe("rotationTables", () => {
  it("are the reference's, bit for bit", () => {
    const { rope, tensor } = flowLayers("z_image");
    const { cos, sin } = rotationTables(rope.positions, rope.axes, rope.theta);
    assert.deepEqual([...cos.data], [...tensor(rope.cos).data]);
    assert.deepEqual([...sin.data], [...tensor(rope.sin).data]);
  });
});
