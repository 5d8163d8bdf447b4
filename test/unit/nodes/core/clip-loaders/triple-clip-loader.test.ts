import assert from "node:assert/strict";
import { type Clip, type Host, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fileHost, layeredClip } from "../../../../helpers/graph/file-host.js";

describe("TripleCLIPLoader", () => {
  const inputs = { clip_name1: "t5", clip_name2: "g", clip_name3: "l" };

  it("joins three encoders in the order of their tokens", async () => {
    const loadFile = async (_: unknown, name: string) => layeredClip(name) as never;
    const host: Host = { ...fileHost(), files: () => ["l", "g", "t5"], loadFile };
    const clip = (await invokeNode("TripleCLIPLoader", inputs, { host })).result[0] as Clip;
    assert.deepEqual(
      clip.encoders.map(({ name }) => name),
      ["l", "g", "t5"],
    );
  });

  it("says what the host lacks", async () => {
    await refuses(invokeNode("TripleCLIPLoader", inputs), "host.missing", /it has no separate text encoders\.$/);
  });
});
