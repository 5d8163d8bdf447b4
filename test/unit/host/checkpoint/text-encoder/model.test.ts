import assert from "node:assert/strict";
import type { Clip } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { tinyHost } from "../../../../helpers/models/tiny-host.js";

const [START, END] = [49406, 49407];
const chunk = (pad: number, ...ids: number[]) => [START, ...ids, END, ...new Array<number>(75 - ids.length).fill(pad)];

describe("CheckpointClip", () => {
  const host = tinyHost();
  const clipOf = async (name: string): Promise<Clip> => (await host().loadCheckpoint(`${name}.safetensors`)).clip;

  it("has the encoders of its family, which fill chunks in their own ways", async () => {
    for (const [name, encoders] of [
      ["tiny-sd1", [["l", END]]],
      ["tiny-sd2", [["h", 0]]],
      [
        "tiny-sdxl",
        [
          ["l", END],
          ["g", 0],
        ],
      ],
      ["tiny-sdxl-refiner", [["g", 0]]],
    ] as const) {
      const clip = await clipOf(name);
      assert.deepEqual(
        clip.encoders.map(({ name, pad }) => [name, pad]),
        encoders,
      );
      assert.deepEqual(clip.encoders[0]!.tokenize!("a cat"), [320, 2368]);
      for (const { encode, length } of clip.encoders) assert.deepEqual([typeof encode, length], ["function", 77]);
    }
  });

  it("encodes chunks and pools them", async () => {
    const [encoder] = (await clipOf("tiny-sdxl-refiner")).encoders;
    const { cond, pooled } = await encoder!.encode([chunk(0, 320, 2368), chunk(0, 320)]);
    assert.deepEqual([...cond.shape, ...pooled!.shape], [2, 77, 64, 2, 64]);
    const alone = await encoder!.encode([chunk(0, 320)]);
    assert.deepEqual(alone.cond.data, cond.data.slice(77 * 64));
  });

  it("takes the context from the layer that a node asks for, its family's own without one", async () => {
    const at = async (name: string, layer?: number) => {
      const clip = await clipOf(name);
      const [encoder] = (layer === undefined ? clip : clip.atLayer!(layer)).encoders;
      return (await encoder!.encode([chunk(encoder!.pad, 320, 2368)])).cond;
    };
    for (const [name, own] of [
      ["tiny-sd1", -1],
      ["tiny-sd2", -2],
      ["tiny-sdxl", -2],
    ] as const) {
      const usual = await at(name);
      assert.deepEqual((await at(name, own)).data, usual.data, name);
      assert.ok(layerError(await at(name, own === -1 ? -2 : -1), usual) > 1e-3, name);
    }
  });

  it("refuses layers that no encoder has", async () => {
    const clip = await clipOf("tiny-sd1");
    for (const layer of [0, -25, -1.5, Number.NaN])
      await refuses(() => clip.atLayer!(layer), "value.out-of-range", /expected a whole number from -24 to -1/);
  });

  it("has rows for a textual inversion of its width, and a warning for others", async () => {
    const [encoder] = (await clipOf("tiny-sd1")).encoders;
    const { ids } = encoder!.embedding!("tiny-embedding");
    assert.equal(ids.length, 2);
    const plain = await encoder!.encode([chunk(END, 320)]);
    const { cond } = await encoder!.encode([chunk(END, ...ids)]);
    assert.ok(layerError(cond, plain.cond) > 1e-3);
    assert.match(encoder!.embedding!("no-such-embedding").warning ?? "", /"no-such-embedding" is ignored/);
  });
});
