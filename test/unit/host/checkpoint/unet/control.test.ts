import assert from "node:assert/strict";
import { join } from "node:path";
import { type Conditioning, type Control, type ControlNet, type Model, randn, Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { buildUnet } from "#src/host/checkpoint/unet/build.js";
import { buildControlNet, CheckpointControlNet, controlNetPart } from "#src/host/checkpoint/unet/control.js";
import { levelsOfLdm, renaming, unetModules } from "#src/host/checkpoint/weights/diffusers-names.js";
import { listedNetwork, networkOf } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { fullSizeShapes, headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { goldenNames, isWholeSet, unpackModel } from "../../../../helpers/models/golden.js";
import { goldenLayers, layerError, unetFeeds } from "../../../../helpers/models/layers.js";
import { randomWeights } from "../../../../helpers/models/random-weights.js";
import { recogniseStableDiffusion } from "../../../../helpers/models/recognised.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { someContext, tinyHost } from "../../../../helpers/models/tiny-host.js";
import { under, unetConfigOf } from "../../../../helpers/models/unet-config.js";
import { weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

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

  it("keep a picture for each latent if calls of a run have other numbers of entries", async () => {
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
    const sentence = /is stored as differences, which need a model with 4 input channels; UNet of .* has 9\.$/;
    await refuses(predicted(2, control({ net: difference }), inpainting), "value.invalid", sentence);
    const input = part.config.input.map((block) => ({ ...block, channels: 2 * block.channels }));
    const wide = Object.create(part, { config: { value: { ...part.config, input } } }) as typeof part;
    const wider = control({ net: new CheckpointControlNet(wide, false) });
    await refuses(predicted(2, wider), "value.invalid", /is for a different model family than UNet of tiny-sd1\./);
  });

  it("refuse nets of other hosts and families", async () => {
    const foreign = { ofType: () => foreign } as unknown as ControlNet;
    await refuses(
      predicted(2, control({ net: foreign })),
      "host.missing",
      /cannot run a ControlNet that another host loaded/,
    );
    const { model: other } = await host().loadCheckpoint("tiny-sd2.safetensors");
    const sentence =
      /^ControlNet of tiny-sd1-control\.safetensors is for a different model family than UNet of tiny-sd2/;
    await refuses(predicted(2, control(), other), "value.invalid", sentence);
  });
});

/** Shapes of the ControlNet that belongs to a full-size checkpoint. */
async function shapesFor(name: "sd1" | "sd2" | "sdxl"): Promise<Shapes> {
  const { unet } = await recogniseStableDiffusion(headerOf(fullSizeShapes()[name]), async () => new Float32Array(320));
  const network = listedNetwork();
  buildControlNet(network, unet.config);
  return Object.fromEntries(network.listed);
}

describe("controlNetPart", () => {
  const folder = temporaryFolder();

  const names = goldenNames("controlnet");
  it("has the golden files at hand", () => assert.deepEqual(names, isWholeSet ? ["sd1_control"] : []));

  for (const name of names)
    it(`reads the golden ${name}`, async () => {
      const file = await weightFile(unpackModel(`controlnet/${name}`, folder()));
      const { config, weights, isDifference } = controlNetPart(file);
      assert.deepEqual([config.modelChannels, config.contextDim, config.input.length], [32, 64, 12]);
      assert.deepEqual([config.heads, config.middle!.depth], [{ count: 8 }, 1]);
      assert.deepEqual([weights.size, isDifference], [file.weights.size, false]);
    });

  it("reads nets of each family, with and without prefix and in diffusers' names", async () => {
    for (const name of ["sd1", "sd2", "sdxl"] as const) {
      const shapes = await shapesFor(name);
      const plain = controlNetPart(headerOf(shapes));
      const prefixed = withKeys({ ...shapes, difference: [] }, (key) => `control_model.${key}`);
      const difference = controlNetPart(headerOf(prefixed));
      assert.deepEqual([difference.config, difference.isDifference], [plain.config, true]);
      const toDiffusers = renaming(unetModules(levelsOfLdm(Object.keys(shapes))), 0);
      const diffusers = withKeys(shapes, (key) => toDiffusers(key) ?? key);
      assert.ok("controlnet_mid_block.weight" in diffusers);
      assert.deepEqual(controlNetPart(headerOf(diffusers)).config, plain.config);
    }
  });

  it("refuses other nets by name, and damaged ones", async () => {
    const shapes = await shapesFor("sdxl");
    const cases: [Shapes, string, RegExp][] = [
      [
        { ...shapes, task_embedding: [6, 320] },
        "model.invalid",
        /"transformer_layes\.0\.mlp\.c_fc\.weight" of 2 sides/,
      ],
      [fullSizeShapes().sd1, "model.unsupported", /received a Stable Diffusion checkpoint/],
      [{ "controlnet_blocks.0.weight": [1, 1] }, "model.unsupported", /ControlNet of Flux/],
      [{ ...shapes, "input_blocks.0.0.weight": [320, 9, 3, 3] }, "model.unsupported", /9 input channels/],
      [{ ...shapes, "zero_convs.9.0.weight": [1, 1, 1, 1] }, "model.unsupported", /"zero_convs\.9\.0\.weight"/],
      [{ ...shapes, "zero_convs.2.0.bias": [1] }, "model.invalid", /"zero_convs\.2\.0\.bias" of shape \[320\]/],
    ];
    for (const [each, code, pattern] of cases) await refuses(() => controlNetPart(headerOf(each)), code, pattern);
  });
});

/** Outputs of a net under the names that the UNet has for its first one. */
const ofFirstNet = (outputs: Record<string, Tensor>): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(outputs).map(([name, value]) => [`${name}.0`, value]));

describe("buildControlNet", () => {
  const folder = temporaryFolder();
  const unetWeights = async () =>
    under("model.diffusion_model.", (await weightFile(unpackModel("checkpoints/sd1_fp8", folder()))).weights);
  /** A random net for the golden UNet. */
  const controlWeights = async () => {
    const config = configOf(await unetWeights());
    const tensors = randomWeights((network) => buildControlNet(network, config));
    return (await weightFile(writeWeights(join(folder(), "control.safetensors"), tensors))).weights;
  };
  const configOf = (weights: WeightMap) =>
    unetConfigOf(new Map([...weights].map(([key, { shape }]) => [key, shape] as const)));

  const names = goldenNames("controlnet");
  it("has the golden files at hand", () => assert.deepEqual(names, isWholeSet ? ["sd1_control"] : []));

  for (const name of names)
    it(`asks for every weight of the golden ${name} and no other, each in its shape`, async () => {
      const file = await weightFile(unpackModel(`controlnet/${name}`, folder()));
      const weights = under("control_model.", file.weights);
      const network = listedNetwork();
      buildControlNet(network, configOf(weights));
      const order = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);
      const shapes = [...weights].map(([key, { shape }]) => [key, shape] as const);
      assert.deepEqual([...network.listed].sort(order), shapes.sort(order));
    });

  for (const [height, width] of [
    [8, 8],
    [9, 7],
  ] as const)
    it(`gives a UNet the residuals that it takes, ${height}x${width}, times strength`, async () => {
      const weights = await controlWeights();
      const net = new OnnxGraph("control net");
      buildControlNet(networkOf(net, weights), configOf(weights));
      const session = await graphSession(net.encode({ overridable: true }));
      const { unet, tensor } = goldenLayers("sd1_fp8");
      const feeds = {
        ...unetFeeds(unet.find((vector) => vector.x === "unet.quiet.x")!, tensor),
        x: randn([1, 4, height, width], { seed: 3 }),
      };
      const hint = Tensor.from(
        randn([1, 3, 8 * height, 8 * width], { seed: 4 }).data.map((value) => Math.min(Math.abs(value), 1)),
        [1, 3, 8 * height, 8 * width],
      );
      const at = (strength: number) => session.run({ ...feeds, hint, strength: Tensor.from([strength], [1]) });
      const [full, half] = [await at(1), await at(0.5)];
      for (const [name, { data }] of Object.entries(full))
        assert.deepEqual([...half[name]!.data], [...data.map((value) => value * 0.5)], name);

      const own = await unetWeights();
      const graph = new OnnxGraph("unet");
      buildUnet(networkOf(graph, own), configOf(own), { controls: 1 });
      const steered = await graphSession(graph.encode({ overridable: true }));
      assert.equal(Object.keys(full).length, 13);
      const outs = [full, half].map(
        async (residuals) => (await steered.run({ ...feeds, ...ofFirstNet(residuals) })).out!,
      );
      const [a, b] = await Promise.all(outs);
      assert.deepEqual([...a!.shape], [1, 4, height, width]);
      assert.ok(layerError(a!, b!) > 1e-4);
      await session.release();
      await steered.release();
    });
});
