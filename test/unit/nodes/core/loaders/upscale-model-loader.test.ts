import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("UpscaleModelLoader", () => {
  describeLoader("UpscaleModelLoader", "upscale_models", "upscale models");
});
