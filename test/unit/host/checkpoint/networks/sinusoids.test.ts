import assert from "node:assert/strict";
import {
  rotationTables,
  sectionedTables,
  sinusoids,
  TIME_EMBEDDING,
  timeEmbeddings,
} from "#src/host/checkpoint/networks/sinusoids.js";
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

describe("timeEmbeddings with a factor", () => {
  it("multiply the rounded angle", () => {
    const { data } = timeEmbeddings([Math.fround(0.7)], 1000);
    const plain = timeEmbeddings([Math.fround(Math.fround(0.7) * 1000)]).data;
    // the first frequency is 1
    assert.equal(data[0], plain[0]);
    for (const [i, value] of data.entries()) assert.ok(Math.abs(value - plain[i]!) < 1e-4);
  });
});

describe("sectionedTables", () => {
  it("are those of one axis where a position is equal on all, and of each axis in its section", () => {
    const [sections, theta] = [[1, 2, 1], 100];
    const plain = (place: number) => rotationTables([[place]], [8], theta);
    const { cos, sin } = sectionedTables(
      [
        [3, 3, 3],
        [1, 2, 5],
      ],
      sections,
      theta,
    );
    assert.deepEqual([...cos.data.slice(0, 4)], [...plain(3).cos.data]);
    for (const [pair, place] of [1, 2, 2, 5].entries()) {
      assert.equal(cos.data[4 + pair], plain(place).cos.data[pair]);
      assert.equal(sin.data[4 + pair], plain(place).sin.data[pair]);
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
