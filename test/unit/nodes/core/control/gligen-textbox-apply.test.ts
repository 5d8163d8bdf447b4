import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { encodePlain } from "#src/host/prompt/index.js";
import { refuses } from "../../../../helpers/errors.js";
import { layeredClip } from "../../../../helpers/graph/file-host.js";

describe("GLIGENTextBoxApply", () => {
  const clip = layeredClip("l", -3);
  const model = { boxes() {} };
  const tokens = Tensor.zeros([1, 77, 4]);
  const defaults = { width: 64, height: 64, x: 0, y: 0 };
  const apply = async (conditioning_to: Conditioning, box: object, others: object = {}) => {
    const inputs = {
      conditioning_to,
      clip,
      gligen_textbox_model: model,
      text: "a cat",
      ...defaults,
      ...box,
      ...others,
    };
    return (await invokeNode("GLIGENTextBoxApply", inputs)).result[0] as Conditioning;
  };

  it("adds boxes in cells of the latent, one after the other", async () => {
    const first = await apply([[tokens, { strength: 1 }]], { width: 128, height: 64, x: 8, y: 24 });
    const [[, options]] = (await apply(first, { width: 16, height: 23, x: 0, y: 0 })) as [Conditioning[number]];
    const pooled = (await encodePlain(clip, "a cat"))[0]![1].pooled_output;
    assert.equal((pooled as Tensor).data[0], -3);
    const boxes = [
      { pooled, height: 8, width: 16, y: 3, x: 1 },
      { pooled, height: 2, width: 2, y: 0, x: 0 },
    ];
    assert.deepEqual(options, { strength: 1, gligen: { model, boxes } });
    assert.equal((first[0]![1].gligen as { boxes: unknown[] }).boxes.length, 1);
  });

  it("refuses a clip without a pooled output", async () => {
    const [encoder] = clip.encoders;
    const bare = { encoders: [{ ...encoder!, encode: async () => ({ cond: tokens }) }] };
    await refuses(apply([[tokens, {}]], {}, { clip: bare }), "value.invalid", /clip.*pooled output/);
  });
});
