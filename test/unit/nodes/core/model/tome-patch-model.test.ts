import { describePatch } from "../../../../helpers/graph/patch-tests.js";

describe("TomePatchModel", () => {
  describePatch("TomePatchModel", { ratio: 0.4 }, { ratio: 0 });
});
