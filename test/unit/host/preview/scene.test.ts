import assert from "node:assert/strict";
import { createPreviewHost, encodePrompt, type Tensor } from "latentkit";
import { type Contents, sceneOf } from "#src/host/preview/scene.js";
import type { Colour } from "#src/host/preview/words.js";

const sceneFor = async (family: string, prompt: string) => {
  const { clip } = await createPreviewHost().loadCheckpoint(`preview-${family}.safetensors`);
  const [[cond]] = (await encodePrompt(clip, prompt)) as unknown as [[Tensor, object]];
  return sceneOf(cond);
};
const isWarm = ([red, , blue]: Colour) => red > blue + 0.2;
const isBlue = ([red, green, blue]: Colour) => blue > red + 0.1 && blue > green + 0.1;
const isGreen = ([red, green, blue]: Colour) => green > red && green > blue;
const lightness = ([red, green, blue]: Colour) => red + green + blue;
const has = ({ contents }: { contents?: Contents }) =>
  Object.entries(contents ?? {}).flatMap(([part, isThere]) => (isThere ? [part] : []));

describe("the preview model's scene", () => {
  for (const family of ["sd15", "sdxl"]) {
    it(`gives things the colours that stand before them, ${family}`, async () => {
      const scene = await sceneFor(family, "a red fox in a green forest under a blue sky");
      const { animal, tree, skyTop, light } = scene.palette;
      assert.deepEqual(has(scene), ["trees", "animal"]);
      assert.ok(isWarm(animal) && isGreen(tree) && isBlue(skyTop) && isWarm(light));
      assert.equal(scene.spread, 1);
    });

    it(`is of no landscape if a prompt is empty or names flaws, ${family}`, async () => {
      for (const prompt of ["", "watermark, ugly text", "blurry red sky"]) {
        const { contents, palette, spread } = await sceneFor(family, prompt);
        assert.equal(contents, undefined);
        for (const value of palette.skyTop) assert.ok(Math.abs(value - 0.5) < 0.1);
        assert.ok(spread > 1);
      }
    });
  }

  it("is at night if the words are", async () => {
    const [day, night] = [await sceneFor("sd15", "a lake"), await sceneFor("sd15", "a lake at night")];
    assert.deepEqual([has(day), has(night)], [["water"], ["water", "stars"]]);
    assert.ok(lightness(night.palette.skyTop) < lightness(day.palette.skyTop) / 2);
    assert.deepEqual(has(await sceneFor("sd15", "a yellow moon over a purple sea")), ["water", "stars"]);
  });

  it("gives a colour of nothing that it knows to the light", async () => {
    assert.ok(isGreen((await sceneFor("sd15", "a green cube")).palette.light));
  });

  it("is one of some landscapes for words that it does not know", async () => {
    const prompts = [
      "masterpiece",
      "portrait of a woman",
      "a city street",
      "ein Haus",
      "cat cafe",
      "typewriter",
      "x y z",
    ];
    const scenes = await Promise.all(prompts.map((prompt) => sceneFor("sd15", prompt)));
    assert.ok(scenes.every(({ contents, spread }) => contents !== undefined && spread === 1));
    assert.ok(new Set(scenes.map(({ palette }) => JSON.stringify(palette))).size > 2);
    assert.deepEqual(await sceneFor("sd15", "masterpiece"), scenes[0]);
  });

  it("follows the weight of a word", async () => {
    const plain = await sceneFor("sd15", "a sunny meadow");
    assert.deepEqual(has(await sceneFor("sd15", "a sunny meadow, (night:0.1)")), has(plain));
    assert.deepEqual(has(await sceneFor("sd15", "a sunny meadow, (night:1.3)")), ["stars"]);
  });
});
