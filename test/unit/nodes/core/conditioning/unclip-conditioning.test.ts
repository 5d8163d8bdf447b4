import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";

const tokens = Tensor.zeros([1, 77, 4]);
const run = async (conditioning: Conditioning, strength: number) => {
  const inputs = { conditioning, clip_vision_output: { image: 1 }, strength, noise_augmentation: 0.25 };
  return (await invokeNode("unCLIPConditioning", inputs)).result[0] as Conditioning;
};

describe("unCLIPConditioning", () => {
  it("appends a picture to those of each entry", async () => {
    const first = await run([[tokens, { a: 1 }]], 0.5);
    const picture = { clip_vision_output: { image: 1 }, strength: 0.5, noise_augmentation: 0.25 };
    assert.deepEqual(first[0]![1], { a: 1, unclip_conditioning: [picture] });
    assert.equal(first[0]![0], tokens);
    const second = await run(first, 2);
    assert.deepEqual(second[0]![1].unclip_conditioning, [picture, { ...picture, strength: 2 }]);
  });

  it("changes nothing at a strength of 0", async () => {
    assert.deepEqual(await run([[tokens, {}]], 0), [[tokens, {}]]);
  });
});
