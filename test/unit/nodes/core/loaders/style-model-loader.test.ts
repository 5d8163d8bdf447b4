import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("StyleModelLoader", () => {
  describeLoader("StyleModelLoader", "style_models", "style models");
});
