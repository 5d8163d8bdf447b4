import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("CLIPVisionLoader", () => {
  describeLoader("CLIPVisionLoader", "clip_vision", "CLIP vision models");
});
