import assert from "node:assert/strict";
import { type Clip, createPreviewHost, encodePrompt, type Host, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";

const run = async (clip: unknown, layer: number, host?: Host) => {
  const { result } = await invokeNode("CLIPSetLastLayer", { clip, stop_at_clip_layer: layer }, host && { host });
  return result[0] as Clip;
};

describe("CLIPSetLastLayer", () => {
  it("asks the clip for the layer", async () => {
    const asked: number[] = [];
    const other = fakeClip("l") as Clip;
    const clip = { ...fakeClip("l"), atLayer: (layer: number) => asked.push(layer) && other };
    assert.equal(await run(clip, -2), other);
    assert.deepEqual(asked, [-2]);
  });

  it("takes a clip of one layer for its last, and names the host at any other", async () => {
    const clip = fakeClip("l");
    assert.equal(await run(clip, -1), clip);
    const host = { ...createPreviewHost(), name: "plain" };
    await refuses(run(clip, -2, host), "host.missing", /input "clip".*host "plain" has only its last layer\.$/);
  });

  it("encodes other rows for each layer of the preview host, and the same pooled output", async () => {
    const { clip } = await createPreviewHost().loadCheckpoint("preview-sdxl.safetensors");
    assert.equal(await run(clip, -1), clip);
    const entries = await Promise.all([-1, -2, -3].map(async (layer) => encodePrompt(await run(clip, layer), "a fox")));
    const [last, second, third] = entries.map(([entry]) => entry!);
    assert.deepEqual(second![1], last![1]);
    assert.notDeepEqual(second![0], last![0]);
    assert.notDeepEqual(third![0], second![0]);
    assert.deepEqual((await encodePrompt(await run(await run(clip, -3), -2), "a fox"))[0], second);
    assert.deepEqual((await encodePrompt(await run(await run(clip, -3), -1), "a fox"))[0], last);
    await refuses(() => clip.atLayer!(-25), "value.out-of-range", /from -24 to -1, received -25/);
  });
});
