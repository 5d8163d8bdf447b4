import assert from "node:assert/strict";
import { type Clip, type Host, invokeNode } from "latentkit";
import { fileHost, layeredClip } from "../../../../helpers/graph/file-host.js";

describe("DualCLIPLoaderGGUF", () => {
  it("joins both encoders in the order of their tokens", async () => {
    const clips: Record<string, Clip> = { a: layeredClip("g"), b: layeredClip("l") };
    const host: Host = {
      ...fileHost(),
      files: () => Object.keys(clips),
      loadFile: async (_, name) => clips[name] as never,
    };
    const inputs = { type: "sdxl", clip_name1: "a", clip_name2: "b" };
    const [clip] = (await invokeNode("DualCLIPLoaderGGUF", inputs, { host })).result;
    assert.deepEqual(
      (clip as Clip).encoders.map(({ name }) => name),
      ["l", "g"],
    );
  });
});
