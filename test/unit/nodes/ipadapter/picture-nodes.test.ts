import { invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { describeLoader } from "../../../helpers/graph/loader-tests.js";

describeLoader("IPAdapterModelLoader", "ipadapter", "IPAdapters");

describe("IPAdapterNoise", () => {
  it("refuses noises that are not run", async () => {
    const noise = (inputs: object) => invokeNode("IPAdapterNoise", { type: "fade", strength: 1, blur: 0, ...inputs });
    await refuses(noise({ type: "shuffle" }), "value.invalid", /input "type": expected fade, dissolve, gaussian/);
    await refuses(noise({ image_optional: Tensor.zeros([1, 8, 8, 3]) }), "value.invalid", /input "image_optional"/);
  });
});
