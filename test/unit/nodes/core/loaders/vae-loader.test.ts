import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("VAELoader", () => {
  describeLoader("VAELoader", "vae", "separate VAEs");
});
