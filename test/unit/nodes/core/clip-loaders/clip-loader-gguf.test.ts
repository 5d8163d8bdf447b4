import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("CLIPLoaderGGUF", () =>
  describeLoader("CLIPLoaderGGUF", "text_encoders", "separate text encoders", { type: "lumina2" }));
