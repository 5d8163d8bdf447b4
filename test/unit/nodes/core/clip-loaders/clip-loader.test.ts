import assert from "node:assert/strict";
import { invokeNode } from "latentkit";
import { fileHost } from "../../../../helpers/graph/file-host.js";
import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("CLIPLoader", () => {
  describeLoader("CLIPLoader", "text_encoders", "separate text encoders", { type: "stable_diffusion" });

  it("tells the host what the encoder belongs to, whatever the device", async () => {
    const inputs = { clip_name: "text_encoders.safetensors", type: "sd3", device: "cpu" };
    const [clip] = (await invokeNode("CLIPLoader", inputs, { host: fileHost() })).result;
    assert.deepEqual((clip as unknown as { settings: unknown }).settings, { type: "sd3" });
  });
});
