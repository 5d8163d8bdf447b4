import assert from "node:assert/strict";
import { type Conditioning, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";
import { tellingClip } from "../../../../helpers/graph/telling-clip.js";

describe("CLIPTextEncodeSD3", () => {
  const inputs = { clip_l: "a", clip_g: "b", t5xxl: "", empty_padding: "none" };

  it("leaves out an empty text", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("CLIPTextEncodeSD3", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { clip_l: "a", clip_g: "b" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1 });
  });

  it("encodes an empty text where that is wanted", async () => {
    const { clip, seen } = tellingClip();
    await invokeNode("CLIPTextEncodeSD3", { clip, ...inputs, empty_padding: "empty_prompt" });
    assert.deepEqual(seen, [{ texts: { clip_l: "a", clip_g: "b", t5xxl: "" }, pictures: [] }]);
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("CLIPTextEncodeSD3", { clip: fakeClip("xl"), ...inputs });
    await refuses(run, "host.missing", /it has no clip with the encoders clip_l, clip_g\.$/);
  });
});
