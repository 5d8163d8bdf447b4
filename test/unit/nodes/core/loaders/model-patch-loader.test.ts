import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("ModelPatchLoader", () => {
  describeLoader("ModelPatchLoader", "model_patches", "model patches");
});
