import { modelSampling } from "latentkit";
import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("DiffControlNetLoader", () => {
  const model = { sampling: modelSampling("sd15") };
  describeLoader("DiffControlNetLoader", "controlnet", "ControlNets", { model });
});
