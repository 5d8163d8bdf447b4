import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("ControlNetLoader", () => {
  describeLoader("ControlNetLoader", "controlnet", "ControlNets");
});
