import assert from "node:assert/strict";
import { type Conditioning, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";
import { tellingClip } from "../../../../helpers/graph/telling-clip.js";

describe("CLIPTextEncodeFlux", () => {
  const inputs = { clip_l: "a fox", t5xxl: "a red fox", guidance: 2 };

  it("encodes a text for each encoder, with the guidance", async () => {
    const { clip, seen } = tellingClip();
    const { result } = await invokeNode("CLIPTextEncodeFlux", { clip, ...inputs });
    assert.deepEqual(seen, [{ texts: { clip_l: "a fox", t5xxl: "a red fox" }, pictures: [] }]);
    assert.deepEqual((result[0] as Conditioning)[0]![1], { told: 1, guidance: 2 });
  });

  it("says what the host lacks", async () => {
    const run = invokeNode("CLIPTextEncodeFlux", { clip: fakeClip("l"), ...inputs });
    await refuses(run, "host.missing", /host "preview": it has no clip with the encoders clip_l, t5xxl\.$/);
  });
});
