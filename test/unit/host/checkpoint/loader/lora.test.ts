import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Clip, type Conditioning, type Lora, type Model, randn } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { suiteFolder } from "../../../../helpers/folders.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { randomTensor } from "../../../../helpers/models/lora.js";
import { someContext, tinyHost } from "../../../../helpers/models/tiny-host.js";
import { writeWeights } from "../../../../helpers/models/weight-file.js";

const x = randn([1, 4, 8, 8], { seed: 1 });
const cond = [[someContext(1), {}]] as unknown as Conditioning;
const IDS = [49406, 320, 2368, ...new Array<number>(74).fill(49407)];

describe("CheckpointLora", () => {
  const folder = suiteFolder();
  const host = tinyHost(() => [folder()]);
  let model: Model;
  let clip: Clip;
  let lora: Lora;
  before(async () => {
    ({ model, clip } = await host().loadCheckpoint("tiny-sd1.safetensors"));
    lora = await host().loadFile!("loras", "tiny-sd1-lora.safetensors");
  });
  const predicted = (of: Model) => of.predict!(x, 2, cond);
  const encoded = async (of: Clip) => (await of.encoders[0]!.encode([IDS])).cond;

  it("changes model and clip, each by its own strength, and leaves the originals", async () => {
    const [plain, words] = [await predicted(model), await encoded(clip)];
    const [changed, text] = lora.apply(model, clip, { model: 0.8, clip: 0 });
    assert.ok(layerError(await predicted(changed), plain) > 1e-3);
    assert.deepEqual((await encoded(text!)).data, words.data);
    const [same, other] = lora.apply(model, clip, { model: 0, clip: 0.8 });
    assert.deepEqual((await predicted(same)).data, plain.data);
    assert.ok(layerError(await encoded(other!), words) > 1e-3);
    assert.deepEqual((await predicted(model)).data, plain.data);
  });

  it("adds up with others: one strength and its negative cancel", async () => {
    const [once] = lora.apply(model, undefined, { model: 0.5, clip: 0 });
    const [twice] = lora.apply(once, undefined, { model: 0.5, clip: 0 });
    const [full] = lora.apply(model, undefined, { model: 1, clip: 0 });
    assert.ok(layerError(await predicted(twice), await predicted(full)) < 1e-5);
    const [none, text] = lora.apply(once, undefined, { model: -0.5, clip: 0 });
    assert.equal(text, undefined);
    assert.ok(layerError(await predicted(none), await predicted(model)) < 1e-5);
  });

  it("says which of its layers no network has", async () => {
    assert.equal(lora.unmatched!(model, clip), undefined);
    assert.match(
      lora.unmatched!(model, undefined)!,
      /^LoRA "tiny-sd1-lora\.safetensors": the model has no layers for "lora_te_/,
    );
  });

  it("leaves the first layer of a model with more inputs as it is, and says so", async () => {
    const path = "down_blocks_2_attentions_0_transformer_blocks_0_attn1_to_k";
    const pair = (layer: string, up: readonly number[], down: readonly number[]) => ({
      [`lora_unet_${layer}.lora_up.weight`]: randomTensor(1, up),
      [`lora_unet_${layer}.lora_down.weight`]: randomTensor(2, down),
    });
    const both = { ...pair(path, [64, 2], [2, 64]), ...pair("conv_in", [32, 2, 1, 1], [2, 4, 3, 3]) };
    const only = pair(path, [64, 2], [2, 64]);
    const wider = pair("conv_in", [32, 2, 1, 1], [2, 9, 3, 3]);
    mkdirSync(join(folder(), "loras"));
    for (const [name, tensors] of Object.entries({ both, only, wider }))
      writeWeights(join(folder(), "loras", `${name}.safetensors`), tensors);
    const { model: repainting } = await host().loadCheckpoint("tiny-sd1-inpainting.safetensors");
    const changed = async (name: string, of: Model) => {
      const file = await host().loadFile!("loras", `${name}.safetensors`);
      const [adapted] = file.apply(of, undefined, { model: 1, clip: 0 });
      return { warning: file.unmatched!(of, undefined), out: await predicted(adapted) };
    };
    const [whole, part] = [await changed("both", repainting), await changed("only", repainting)];
    assert.deepEqual(whole.out.data, part.out.data);
    const sentence = '"lora_unet_conv_in" is left out, as the model has 9 inputs and not 4.';
    assert.deepEqual([whole.warning, part.warning], [`LoRA "both.safetensors": ${sentence}`, undefined]);
    const [same, other] = [await changed("both", model), await changed("only", model)];
    assert.equal(same.warning, undefined);
    assert.ok(layerError(same.out, other.out) > 1e-3);
    await refuses(
      changed("wider", model),
      "model.invalid",
      /conv_in\.lora_down\.weight", for a weight of \[32, 4, 3, 3\]/,
    );
  });

  it("refuses models and clips of another host, and of another family", async () => {
    const foreign: Model = { sampling: model.sampling };
    const strengths = { model: 1, clip: 1 };
    await refuses(() => lora.apply(foreign, undefined, strengths), "host.missing", /cannot change a model of another/);
    const words: Clip = { encoders: [{ ...clip.encoders[0]! }] };
    await refuses(() => lora.apply(model, words, strengths), "host.missing", /cannot change a clip of another host/);
    const xl = await host().loadCheckpoint("tiny-sdxl.safetensors");
    assert.match(lora.unmatched!(xl.model, xl.clip)!, /the model has no layers for/);
  });
});
