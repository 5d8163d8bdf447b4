import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("StyleModelApply", () => {
  const words = Tensor.from([1, 2, 3, 4, 5, 6], [1, 3, 2]);
  const conditioning: Conditioning = [[Tensor.from([7, 8, 9, 10], [1, 2, 2]), { pooled_output: words }]];
  const picture = {};
  const apply = async (inputs: object, tokens = words) => {
    const style_model = {
      tokens: async (output: unknown) => (output === picture ? tokens : assert.fail("another picture")),
    };
    const own = {
      conditioning,
      style_model,
      clip_vision_output: picture,
      strength: 1,
      strength_type: "multiply",
      ...inputs,
    };
    return (await invokeNode("StyleModelApply", own)).result[0];
  };

  it("adds the picture's words times its strength to the prompt's", async () => {
    const [[tokens, options]] = (await apply({ strength: 0.5 })) as [Conditioning[number]];
    assertSameBits(tokens, Tensor.from([7, 8, 9, 10, 0.5, 1, 1.5, 2, 2.5, 3], [1, 5, 2]));
    assert.deepEqual(options, { pooled_output: words });
    const [[same]] = (await apply({ strength: 1, strength_type: "attn_bias" })) as [Conditioning[number]];
    assertSameBits(same, Tensor.from([7, 8, 9, 10, 1, 2, 3, 4, 5, 6], [1, 5, 2]));
  });

  it("refuses a bias of attention, and words of another width", async () => {
    await refuses(apply({ strength: 0.5, strength_type: "attn_bias" }), "input.invalid", /strength_type.*"multiply"/);
    await refuses(apply({}, Tensor.zeros([1, 3, 4])), "tensor.bad-shape", /tokens \[1, n, dim\]/);
  });
});
