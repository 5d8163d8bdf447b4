import assert from "node:assert/strict";
import { encodePrompt, invokeNode } from "latentkit";
import type { Conditioning } from "#src/host/types.js";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";

const run = async (key: string, inputs: object): Promise<unknown[]> => (await invokeNode(key, { ...inputs })).result;

describe("CLIPTextEncode", () => {
  it("weighs a prompt and takes BREAK and TIMESTEP as words", async () => {
    const clip = fakeClip("l");
    const [weighted] = (await run("CLIPTextEncode", { text: "a (b:1.5)", clip })) as [Conditioning];
    assert.deepEqual(weighted, await encodePrompt(clip, "a (b:1.5)"));
    const [plain] = (await run("CLIPTextEncode", { text: "a BREAK b TIMESTEP:0.5", clip })) as [Conditioning];
    assert.equal(plain.length, 1);
    assert.deepEqual(plain[0]![0].shape, [1, 77, 8]);
  });

  it("refuses bad inputs", async () => {
    await refuses(run("CLIPTextEncode", { text: "a" }), "input.missing", /clip/);
    await refuses(run("CLIPTextEncode", { text: "a", clip: { encoders: [] } }), "input.wrong-type", /clip/);
    await refuses(run("CLIPTextEncode", { text: ["a"], clip: fakeClip("l") }), "input.wrong-type", /text/);
  });
});
