import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { joinedTokens, patchesOf, pictureOf } from "#src/host/checkpoint/flux/patches.js";

const counted = (shape: number[]): Tensor =>
  Tensor.from(
    Array.from({ length: shape.reduce((product, side) => product * side) }, (_, index) => index),
    shape,
  );

describe("patchesOf", () => {
  it("takes the cells of a channel after each other, or the channels of a cell", () => {
    const picture = counted([1, 2, 2, 4]);
    const byChannel = patchesOf(picture, "cells-of-channels");
    assert.deepEqual(byChannel.shape, [1, 2, 8]);
    assert.deepEqual([...byChannel.data], [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]);
    const byCell = patchesOf(picture, "channels-of-cells");
    assert.deepEqual([...byCell.data], [0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14, 7, 15]);
  });

  it("begins again at the end of an odd side", () => {
    assert.deepEqual([...patchesOf(counted([1, 1, 1, 3]), "cells-of-channels").data], [0, 1, 0, 1, 2, 0, 2, 0]);
    assert.deepEqual([...patchesOf(counted([1, 1, 3, 1]), "cells-of-channels").data], [0, 0, 1, 1, 2, 2, 0, 0]);
  });
});

describe("pictureOf", () => {
  it("undoes patchesOf at any sides and for any item, whatever follows the picture's patches", () => {
    for (const order of ["cells-of-channels", "channels-of-cells"] as const)
      for (const [height, width] of [
        [2, 4],
        [3, 5],
        [1, 1],
        [4, 3],
      ] as const) {
        const picture = counted([2, 3, height, width]);
        const tokens = joinedTokens([patchesOf(picture, order), patchesOf(counted([2, 3, 5, 1]), order)]);
        assert.deepEqual([...pictureOf(tokens, [height, width], order).data], [...picture.data]);
      }
  });
});

describe("patches of one cell", () => {
  it("are the channels of each cell", () => {
    const picture = counted([2, 3, 1, 2]);
    const patches = patchesOf(picture, "cells-of-channels", 1);
    assert.deepEqual(patches.shape, [2, 2, 3]);
    assert.deepEqual([...patches.data], [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
    assert.deepEqual([...pictureOf(patches, [1, 2], "cells-of-channels", 1).data], [...picture.data]);
  });
});

describe("joinedTokens", () => {
  it("repeats the tokens of a single item for all", () => {
    const joined = joinedTokens([counted([2, 1, 2]), counted([1, 2, 2])]);
    assert.deepEqual(joined.shape, [2, 3, 2]);
    assert.deepEqual([...joined.data], [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 2, 3]);
  });
});
