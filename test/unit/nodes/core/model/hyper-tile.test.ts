import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("HyperTile", () => {
  describePatch("HyperTile", { tile_size: 128, swap_size: 3, max_depth: 1, scale_depth: true });
});
