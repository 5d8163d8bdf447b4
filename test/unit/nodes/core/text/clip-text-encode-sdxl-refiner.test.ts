import assert from "node:assert/strict";
import { type Conditioning, invokeNode } from "latentkit";
import { encodePlain } from "#src/host/prompt/index.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";

describe("CLIPTextEncodeSDXLRefiner", () => {
  it("adds score and size to the encoded text", async () => {
    const clip = { encoders: [fakeClip("xl").encoders[1]!] };
    const inputs = { clip, text: "a (fox:1.2)", ascore: 6.5, width: 640, height: 320 };
    const { result } = await invokeNode("CLIPTextEncodeSDXLRefiner", inputs);
    const [[tokens, options]] = result[0] as [Conditioning[number]];
    const [[plain, { pooled_output }]] = (await encodePlain(clip, "a (fox:1.2)")) as [Conditioning[number]];
    assert.deepEqual(tokens, plain);
    assert.deepEqual(options, { pooled_output, aesthetic_score: 6.5, width: 640, height: 320 });
  });
});
