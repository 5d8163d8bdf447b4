import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import {
  FLUX_PLACES,
  FLUX2_PLACES,
  fluxAxes,
  fluxPositions,
  joinedTokens,
  patchesOf,
  pictureOf,
} from "#src/host/checkpoint/flux/patches.js";
import { rotationTables } from "#src/host/checkpoint/networks/sinusoids.js";
import { fluxLayers } from "../../../../helpers/models/golden-flux.js";

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

/** Positions of the first patches of each picture. */
const corners = (places: "offset" | "index" | "uxo", ...references: [number, number][]) => {
  const all = fluxPositions(0, [4, 6], references, places);
  let at = 6;
  return references.map(([height, width]) => {
    const corner = all[at];
    at += Math.ceil(height / 2) * Math.ceil(width / 2);
    return corner;
  });
};

describe("fluxPositions", () => {
  it("are the reference's, and turn by its angles", () => {
    const { trace, tensor } = fluxLayers();
    const { ids, pe } = trace.after;
    const positions = fluxPositions(
      tensor(trace.context).shape[1]!,
      tensor(trace.x).shape.slice(2) as [number, number],
    );
    assert.deepEqual(positions.flat(), [...tensor(ids).data]);
    const { cos, sin } = rotationTables(positions, fluxAxes(32), FLUX_PLACES.theta);
    const { data } = tensor(pe);
    // matrices [[cos, -sin], [sin, cos]]
    assert.deepEqual(
      [...cos.data],
      Array.from(cos.data, (_, pair) => data[4 * pair]),
    );
    assert.deepEqual(
      [...sin.data],
      Array.from(sin.data, (_, pair) => data[4 * pair + 2]),
    );
  });

  it("place a reference where all together are shorter", () => {
    // the second below the first, which is wide; the third to the right of both
    assert.deepEqual(corners("offset", [4, 8], [4, 8], [8, 4]), [
      [1, 0, 0],
      [1, 2, 0],
      [1, 0, 4],
    ]);
    assert.deepEqual(corners("offset", [5, 3], [5, 3]), [
      [1, 0, 0],
      [1, 0, 2],
    ]);
  });

  it("place references behind the picture, or diagonally after it", () => {
    assert.deepEqual(corners("index", [4, 8], [2, 2]), [
      [1, 0, 0],
      [2, 0, 0],
    ]);
    assert.deepEqual(corners("uxo", [4, 8], [2, 2]), [
      [0, 2, 3],
      [0, 4, 7],
    ]);
  });

  it("share a head among the axes as 16, 56 and 56 of 128", () => {
    assert.deepEqual(fluxAxes(128), [16, 56, 56]);
    assert.deepEqual(fluxAxes(32), [4, 14, 14]);
  });

  it("of Flux.2 have a fourth axis for the text, and references ten planes apart", () => {
    assert.deepEqual(fluxAxes(128, FLUX2_PLACES), [32, 32, 32, 32]);
    const references = [
      [1, 2],
      [1, 1],
    ] as const;
    assert.deepEqual(fluxPositions(2, [2, 1], references, "index", FLUX2_PLACES), [
      [0, 0, 0, 0],
      [0, 0, 0, 1],
      [0, 0, 0, 0],
      [0, 1, 0, 0],
      [10, 0, 0, 0],
      [10, 0, 1, 0],
      [20, 0, 0, 0],
    ]);
    assert.deepEqual(fluxPositions(0, [2, 1], references, "uxo", FLUX2_PLACES).slice(2), [
      [0, 2, 1, 0],
      [0, 2, 2, 0],
      [0, 3, 3, 0],
    ]);
  });
});
