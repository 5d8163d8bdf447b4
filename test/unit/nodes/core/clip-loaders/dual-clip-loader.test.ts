import assert from "node:assert/strict";
import { type Clip, type Host, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost, layeredClip } from "../../../../helpers/graph/file-host.js";

describe("DualCLIPLoader", () => {
  const load = async (clips: Record<string, Clip>, inputs: object) => {
    const host: Host = {
      ...fileHost(),
      files: () => Object.keys(clips),
      loadFile: async (_, name) => clips[name] as never,
    };
    return (await invokeNode("DualCLIPLoader", { type: "sdxl", ...inputs }, { host })).result[0];
  };
  const names = (clip: Clip) => clip.encoders.map(({ name }) => name);

  it("joins both encoders in the order of their tokens, whatever the order of the files", async () => {
    const clips = { a: layeredClip("l"), b: layeredClip("g") };
    assert.deepEqual(names(await load(clips, { clip_name1: "a", clip_name2: "b" })), ["l", "g"]);
    const swapped = await load(clips, { clip_name1: "b", clip_name2: "a" });
    assert.deepEqual(names(swapped), ["l", "g"]);
    assert.equal(swapped.encoders[0], clips.a.encoders[0]);
  });

  it("takes an earlier layer of both encoders, where both have layers", async () => {
    const clip = await load({ a: layeredClip("l"), b: layeredClip("g") }, { clip_name1: "a", clip_name2: "b" });
    for (const { encode } of clip.atLayer!(-3).encoders) assert.equal((await encode([[1]])).cond.data[0], -3);
    const { atLayer, ...single } = layeredClip("g");
    const without = await load({ a: layeredClip("l"), b: single }, { clip_name1: "a", clip_name2: "b" });
    assert.equal(without.atLayer, undefined);
  });

  it("says what the host lacks", async () => {
    const inputs = { type: "flux", clip_name1: "a", clip_name2: "b" };
    await refuses(
      invokeNode("DualCLIPLoader", inputs),
      "host.missing",
      /host "preview": it has no separate text encoders\.$/,
    );
  });
});
