import assert from "node:assert/strict";
import { FLUX_PLACES, FLUX2_PLACES, fluxAxes, fluxPositions } from "#src/host/checkpoint/flux/positions.js";
import { rotationTables } from "#src/host/checkpoint/networks/sinusoids.js";
import { fluxLayers } from "../../../../helpers/models/golden-flux.js";

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
