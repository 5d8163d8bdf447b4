import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("GLIGENLoader", () => {
  describeLoader("GLIGENLoader", "gligen", "GLIGEN models");
});
