import assert from "node:assert/strict";
import { type Clip, type Host, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost, layeredClip } from "../../../../helpers/graph/file-host.js";

describe("QuadrupleCLIPLoader", () => {
  const inputs = { clip_name1: "llama", clip_name2: "t5", clip_name3: "g", clip_name4: "l" };

  it("joins four encoders, the two of CLIP first", async () => {
    const loadFile = async (_: unknown, name: string) => layeredClip(name) as never;
    const host: Host = { ...fileHost(), files: () => ["l", "g", "t5", "llama"], loadFile };
    const clip = (await invokeNode("QuadrupleCLIPLoader", inputs, { host })).result[0] as Clip;
    assert.deepEqual(
      clip.encoders.map(({ name }) => name),
      ["l", "g", "llama", "t5"],
    );
  });

  it("says what the host lacks", async () => {
    await refuses(invokeNode("QuadrupleCLIPLoader", inputs), "host.missing", /it has no separate text encoders\.$/);
  });
});
