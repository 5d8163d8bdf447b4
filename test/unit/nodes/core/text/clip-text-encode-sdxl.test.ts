import assert from "node:assert/strict";
import { type Conditioning, encodePrompt, invokeNode } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { fakeClip } from "../../../../helpers/graph/fake-clip.js";

const SIZES = { width: 1, height: 2, crop_w: 3, crop_h: 4, target_width: 5, target_height: 6 };
const run = async (text_g: string, text_l: string, clip: object = fakeClip("xl")) =>
  (await invokeNode("CLIPTextEncodeSDXL", { clip, ...SIZES, text_g, text_l })).result[0] as Conditioning;

describe("CLIPTextEncodeSDXL", () => {
  it("encodes a text for each encoder and adds the sizes", async () => {
    const [[tokens, options]] = (await run("a fox", "a (hen:1.3)")) as [Conditioning[number]];
    const [[fox, foxOptions]] = (await encodePrompt(fakeClip("xl"), "a fox")) as [Conditioning[number]];
    const [[hen]] = (await encodePrompt(fakeClip("xl"), "a (hen:1.3)")) as [Conditioning[number]];
    assert.deepEqual(options, { ...SIZES, pooled_output: foxOptions.pooled_output });
    assert.deepEqual(tokens.shape, [1, 77, 16]);
    for (let at = 0; at < tokens.size; at++) assert.equal(tokens.data[at], (at % 16 < 8 ? hen : fox).data[at]);
  });

  it("fills the shorter text with empty chunks", async () => {
    const long = "word ".repeat(100);
    for (const [g, l] of [
      ["a", long],
      [long, "a"],
    ] as const) {
      const [[tokens]] = (await run(g, l)) as [Conditioning[number]];
      assert.deepEqual(tokens.shape, [1, 154, 16]);
      const [[short]] = (await encodePrompt(fakeClip("xl"), "a")) as [Conditioning[number]];
      const from = g === "a" ? 8 : 0;
      assert.equal(tokens.data[16 + from], short.data[16 + from]);
    }
  });

  it("refuses a clip of one encoder", async () => {
    await refuses(run("a", "b", fakeClip("l")), "value.invalid", /encoders g and l, as SDXL's, received "l"/);
  });
});
