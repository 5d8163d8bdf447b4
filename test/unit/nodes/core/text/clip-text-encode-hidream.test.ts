import assert from "node:assert/strict";
import { type Conditioning, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";
import { tellingClip } from "../../../../helpers/graph/telling-clip.js";

describe("CLIPTextEncodeHiDream", () => {
  const inputs = { clip_l: "a", clip_g: "b", t5xxl: "c", llama: "d" };

  it("encodes a text for each encoder", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("CLIPTextEncodeHiDream", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: inputs, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("CLIPTextEncodeHiDream", { clip: fakeClip("xl"), ...inputs });
    await refuses(run, "host.missing", /it has no clip with the encoders clip_l, clip_g, t5xxl, llama\.$/);
  });
});
