import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { fileHost } from "../../../../helpers/graph/file-host.js";
import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("UNETLoader", () => {
  describeLoader("UNETLoader", "diffusion_models", "separate diffusion models", { weight_dtype: "default" });

  it("tells the host the type of the weights", async () => {
    const inputs = { unet_name: "diffusion_models.safetensors", weight_dtype: "fp8_e5m2" };
    const [model] = (await invokeNode("UNETLoader", inputs, { host: fileHost() })).result;
    assert.deepEqual((model as unknown as { settings: unknown }).settings, { weight_dtype: "fp8_e5m2" });
  });
});
