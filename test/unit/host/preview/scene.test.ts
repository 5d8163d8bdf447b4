import assert from "node:assert/strict";
import { createPreviewHost, encodePrompt } from "latentkit";
import { sceneOf } from "#src/host/preview/scene.js";

const sceneFor = async (family: string, prompt: string) => {
  const { clip } = await createPreviewHost().loadCheckpoint(`preview-${family}.safetensors`);
  const [[cond]] = (await encodePrompt(clip, prompt)) as [[Parameters<typeof sceneOf>[0], object]];
  return sceneOf(cond);
};
const isWarm = ([red, , blue]: readonly [number, number, number]) => red > blue;

describe("the preview model's scene", () => {
  for (const family of ["sd15", "sdxl"]) {
    it(`takes a prompt's colours in the order of its words, ${family}`, async () => {
      const { subject, above, below, spread } = await sceneFor(
        family,
        "a red house in a green forest under a blue sky",
      );
      assert.ok(isWarm(subject));
      assert.ok(!isWarm(above));
      assert.ok(below[1] > below[0] && below[1] > below[2], "green");
      assert.equal(spread, 1);
    });

    it(`is muted and vague where no word has a colour, ${family}`, async () => {
      const { subject, spread } = await sceneFor(family, "watermark, ugly text");
      for (const value of subject) assert.ok(Math.abs(value - 0.5) < 0.1);
      assert.ok(spread > 1);
    });
  }

  it("follows the weight of a word", async () => {
    assert.equal((await sceneFor("sd15", "a (red:1.4) cube")).spread, 1);
    assert.ok((await sceneFor("sd15", "a (red:0.1) cube")).spread > 1);
  });
});
