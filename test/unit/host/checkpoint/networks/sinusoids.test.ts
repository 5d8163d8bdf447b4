import assert from "node:assert/strict";
import { sinusoids, TIME_EMBEDDING, timeEmbeddings } from "#src/host/checkpoint/networks/sinusoids.js";

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
