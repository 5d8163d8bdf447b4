import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";

describe("ControlNetApplyAdvanced", () => {
  const tokens = Tensor.zeros([1, 77, 8]);
  const image = Tensor.full([1, 16, 16, 3], 0.5);
  const [positive, negative]: Conditioning[] = [[[tokens, { area: [1, 1, 0, 0] }]], [[tokens, {}]]];
  const vae = { encode: async (x: Tensor) => x, decode: async (x: Tensor) => x };
  const defaults = { strength: 1, start_percent: 0, end_percent: 1 };
  const apply = async (inputs: object) =>
    (
      await invokeNode("ControlNetApplyAdvanced", {
        positive,
        negative,
        control_net: {},
        image,
        vae,
        ...defaults,
        ...inputs,
      })
    ).result;

  it("adds one control to both sides, for a part of sampling", async () => {
    const sides = await apply({ strength: 2, start_percent: 0.25, end_percent: 0.75 });
    const control = { net: {}, hint: image, strength: 2, start: 0.25, end: 0.75, vae, previous: undefined };
    assert.deepEqual(sides[0], [[tokens, { area: [1, 1, 0, 0], control, control_apply_to_uncond: false }]]);
    assert.equal(sides[1][0]![1].control, sides[0][0]![1].control);
    assert.deepEqual(negative, [[tokens, {}]]);
  });

  it("returns both sides themselves where the strength is 0", async () => {
    assert.deepEqual(await apply({ strength: 0 }), [positive, negative]);
  });

  it("needs no vae, but a strength within its bounds", async () => {
    const [side] = await apply({ vae: undefined });
    assert.equal((side![0]![1] as { control: { vae: unknown } }).control.vae, undefined);
    await refuses(apply({ strength: 10.5 }), "input.above-maximum", /strength/);
  });
});
