import assert from "node:assert/strict";
import { type Clip, type Host, invokeNode } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { fileHost, layeredClip } from "../../../helpers/graph/file-host.js";
import { describeLoader } from "../../../helpers/graph/loader-tests.js";

/** A host with these clips as its files. */
const hostOf = (clips: Readonly<Record<string, Clip>>): Host => ({
  ...fileHost(),
  files: () => Object.keys(clips),
  loadFile: async (_, name) => clips[name] as never,
});

const names = (clip: unknown) => (clip as Clip).encoders.map(({ name }) => name);

describeLoader("CLIPLoader", "text_encoders", "separate text encoders", { type: "stable_diffusion" });

describe("CLIPLoader", () => {
  it("tells the host what the encoder belongs to, whatever the device", async () => {
    const inputs = { clip_name: "text_encoders.safetensors", type: "sd3", device: "cpu" };
    const [clip] = (await invokeNode("CLIPLoader", inputs, { host: fileHost() })).result;
    assert.deepEqual((clip as unknown as { settings: unknown }).settings, { type: "sd3" });
  });
});

describe("DualCLIPLoader", () => {
  const load = async (clips: Record<string, Clip>, inputs: object) =>
    (await invokeNode("DualCLIPLoader", { type: "sdxl", ...inputs }, { host: hostOf(clips) })).result[0];

  it("joins both encoders in the order of their tokens, whatever the order of the files", async () => {
    const clips = { a: layeredClip("l"), b: layeredClip("g") };
    assert.deepEqual(names(await load(clips, { clip_name1: "a", clip_name2: "b" })), ["l", "g"]);
    const swapped = await load(clips, { clip_name1: "b", clip_name2: "a" });
    assert.deepEqual(names(swapped), ["l", "g"]);
    assert.equal(swapped.encoders[0], clips.a.encoders[0]);
  });

  it("takes an earlier layer of both encoders, if both have layers", async () => {
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
      /host "preview" has no separate text encoders\.$/,
    );
  });
});

for (const [key, files, joined] of [
  ["TripleCLIPLoader", ["t5", "g", "l"], ["l", "g", "t5"]],
  ["TripleCLIPLoaderGGUF", ["t5", "g", "l"], ["l", "g", "t5"]],
  ["QuadrupleCLIPLoader", ["llama", "t5", "g", "l"], ["l", "g", "llama", "t5"]],
] as const) {
  describe(key, () => {
    const inputs = Object.fromEntries(files.map((name, i) => [`clip_name${i + 1}`, name]));

    it("joins its encoders in the order of their tokens, the two of CLIP first", async () => {
      const host = hostOf(Object.fromEntries(files.map((name) => [name, layeredClip(name)])));
      assert.deepEqual(names((await invokeNode(key, inputs, { host })).result[0]), joined);
    });

    it("says what the host lacks", async () => {
      await refuses(invokeNode(key, inputs), "host.missing", /has no separate text encoders\.$/);
    });
  });
}

describeLoader("CLIPLoaderGGUF", "text_encoders", "separate text encoders", { type: "lumina2" });

describe("DualCLIPLoaderGGUF", () => {
  it("joins both encoders in the order of their tokens", async () => {
    const host = hostOf({ a: layeredClip("g"), b: layeredClip("l") });
    const inputs = { type: "sdxl", clip_name1: "a", clip_name2: "b" };
    const [clip] = (await invokeNode("DualCLIPLoaderGGUF", inputs, { host })).result;
    assert.deepEqual(names(clip), ["l", "g"]);
  });
});
