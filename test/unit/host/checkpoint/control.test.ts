import assert from "node:assert/strict";
import { type Conditioning, type Control, type ControlNet, type Model, randn, Tensor } from "latentkit";
import { CheckpointControlNet } from "#src/host/checkpoint/control-net.js";
import { refuses } from "../../../helpers/errors.js";
import { layerError } from "../../../helpers/models/layers.js";
import { someContext, tinyHost } from "../../../helpers/models/tiny-host.js";

const x = randn([1, 4, 8, 8], { seed: 1 });
const hint = Tensor.from(
  randn([1, 64, 64, 3], { seed: 2 }).data.map((value) => Math.min(1, Math.abs(value))),
  [1, 64, 64, 3],
);

describe("controls of a checkpoint's model", () => {
  const host = tinyHost();
  let model: Model;
  let net: ControlNet;
  before(async () => {
    ({ model } = await host().loadCheckpoint("tiny-sd1.safetensors"));
    net = await host().loadFile!("controlnet", "tiny-sd1-control.safetensors");
  });
  const control = (changes: Partial<Control> = {}): Control => ({
    net,
    hint,
    strength: 1,
    start: 0,
    end: 1,
    ...changes,
  });
  const cond = (control?: Control) => [[someContext(1), control ? { control } : {}]] as unknown as Conditioning;
  const predicted = (sigma: number, by?: Control, of = model) => of.predict!(x, sigma, cond(by));

  it("change the prediction by their strength", async () => {
    const [plain, none, full] = [
      await predicted(2),
      await predicted(2, control({ strength: 0 })),
      await predicted(2, control()),
    ];
    assert.ok(layerError(none, plain) < 1e-6);
    assert.ok(layerError(full, plain) > 1e-3);
  });

  it("count between start and end of sampling alone", async () => {
    const early = control({ end: 0.5 });
    const late = control({ start: 0.5 });
    for (const [sigma, on, off] of [
      [10, early, late],
      [0.1, late, early],
    ] as const) {
      const plain = await predicted(sigma);
      assert.ok(layerError(await predicted(sigma, on), plain) > 1e-4, `${sigma}, on`);
      assert.ok(layerError(await predicted(sigma, off), plain) < 1e-6, `${sigma}, off`);
    }
  });

  it("add up along a chain", async () => {
    const half = control({ strength: 0.5 });
    const chain = control({ strength: 0.5, previous: half });
    assert.ok(layerError(await predicted(2, chain), await predicted(2, control())) < 1e-5);
    const over = control({ start: 0.9, previous: half });
    assert.ok(layerError(await predicted(10, over), await predicted(10, half)) < 1e-6);
  });

  it("take hints of other sizes", async () => {
    const large = Tensor.full([1, 100, 50, 3], 0.5);
    const even = Tensor.full([1, 64, 64, 3], 0.5);
    const [a, b] = [await predicted(2, control({ hint: large })), await predicted(2, control({ hint: even }))];
    assert.deepEqual(a.data, b.data);
  });

  it("keep a picture for each latent where calls of a run have other numbers of entries", async () => {
    const pictures = Tensor.from([...hint.data, ...hint.data.map((value) => 1 - value)], [2, 64, 64, 3]);
    const [entry] = cond(control({ hint: pictures })) as [Conditioning[number]];
    const [two, four] = [randn([2, 4, 8, 8], { seed: 3 }), Tensor.zeros([4, 4, 8, 8])];
    four.data.set(two.data);
    four.data.set(two.data, two.size);
    const start = { sampling: model.sampling, latent: Tensor.zeros(two.shape), negative: [], steps: 2 };
    const run = model.forRun!(start);
    const both = await run.predict(four, 2, [entry, entry]);
    const one = await run.predict(two, 2, [entry]);
    assert.ok(layerError(one, Tensor.from(both.data.slice(0, two.size), two.shape)) < 1e-5);
  });

  it("guide an inpainting model, whose further channels the net does not get", async () => {
    const { model: inpainting } = await host().loadCheckpoint("tiny-sd1-inpainting.safetensors");
    const plain = await predicted(2, undefined, inpainting);
    assert.ok(layerError(await predicted(2, control({ strength: 0 }), inpainting), plain) < 1e-6);
    assert.ok(layerError(await predicted(2, control(), inpainting), plain) > 1e-3);
  });

  it("refuse nets that do not fit a model of their family", async () => {
    const { model: inpainting } = await host().loadCheckpoint("tiny-sd1-inpainting.safetensors");
    const { part } = net as CheckpointControlNet;
    const difference = new CheckpointControlNet(part, true);
    const sentence = /is stored as differences, which need a model of 4 input channels; UNet of .* has 9\.$/;
    await refuses(predicted(2, control({ net: difference }), inpainting), "value.invalid", sentence);
    const input = part.config.input.map((block) => ({ ...block, channels: 2 * block.channels }));
    const wide = Object.create(part, { config: { value: { ...part.config, input } } }) as typeof part;
    const wider = control({ net: new CheckpointControlNet(wide, false) });
    await refuses(predicted(2, wider), "value.invalid", /is for models of another family than UNet of tiny-sd1\./);
  });

  it("refuse nets of other hosts and families", async () => {
    const foreign = { ofType: () => foreign } as unknown as ControlNet;
    await refuses(predicted(2, control({ net: foreign })), "host.missing", /cannot run a ControlNet of another host/);
    const { model: other } = await host().loadCheckpoint("tiny-sd2.safetensors");
    const sentence =
      /^ControlNet of tiny-sd1-control\.safetensors is for models of another family than UNet of tiny-sd2/;
    await refuses(predicted(2, control(), other), "value.invalid", sentence);
  });
});
