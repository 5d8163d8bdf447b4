import assert from "node:assert/strict";
import { type Clip, type Conditioning, type Lora, type Model, randn } from "latentkit";
import { refuses } from "../../../../helpers/errors.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { someContext, tinyHost } from "../../../../helpers/models/tiny-host.js";

const x = randn([1, 4, 8, 8], { seed: 1 });
const cond = [[someContext(1), {}]] as unknown as Conditioning;
const IDS = [49406, 320, 2368, ...new Array<number>(74).fill(49407)];

describe("CheckpointLora", () => {
  const host = tinyHost();
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
