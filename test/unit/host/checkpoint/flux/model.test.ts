import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Conditioning, type Host, type Model, modelSampling, randn, render, Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import {
  fluxEmbeddings,
  guidanceOf,
  pictureChannels,
  referencePatches,
  referencesOf,
} from "#src/host/checkpoint/flux/model.js";
import { refuses } from "../../../../helpers/errors.js";
import { root } from "../../../../helpers/folders.js";
import { receiptOf } from "../../../../helpers/graph/receipt-graphs.js";
import { unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";

describe("models of Flux", () => {
  const entry = (tokens: number, seed: number, options: Record<string, unknown> = {}): Conditioning[number] => [
    randn([1, tokens, 48], { seed }),
    options,
  ];
  const reference = (height: number, width: number): Tensor => randn([1, 16, height, width], { seed: 9 });

  let folder: string;
  let host: Host;
  let model: Model;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-flux-"));
    unpackFlux(folder);
    host = createCheckpointHost({ models: folder });
    model = await host.loadFile!("diffusion_models", "flux_dev.safetensors");
  });
  after(async () => {
    await host.close?.();
    rmSync(folder, { recursive: true });
  });

  const FLUX1 = {
    set: { "1.unet_name": "flux_dev.safetensors" },
    files: ["diffusion_models/flux_dev", "text_encoders/clip_l", "text_encoders/t5xxl_fp16", "vae/ae"],
  };
  const KLEIN = {
    set: {
      "1.unet_name": "flux2_klein.safetensors",
      "2.clip_name": "qwen3_klein.safetensors",
      "3.vae_name": "flux2_vae.safetensors",
    },
    files: ["diffusion_models/flux2_klein", "text_encoders/qwen3_klein", "vae/flux2_vae"],
  };
  for (const [name, models, set] of [
    ["flux1", FLUX1, { width: 64, height: 48 }],
    // the picture in its own size: those of Kontext take a minute
    ["flux1-kontext", FLUX1, { "6.pixels": ["4", 0] }],
    ["flux2-klein", KLEIN, { width: 64, height: 48 }],
  ] as const)
    it(`render the example ${name}, and name their files in its receipt`, async () => {
      const options = { host, inputDir: join(root, "examples/input"), outputDir: join(folder, "out") };
      const own = { ...set, ...models.set, prompt: "two dogs on mars, film grain", steps: 2 };
      const { files, warnings } = await render(join(root, `examples/models/${name}.json`), { ...options, set: own });
      assert.deepEqual(warnings, []);
      const named = Object.keys(receiptOf(files[0]!.path!).models!).sort();
      assert.deepEqual(
        named,
        models.files.map((file) => `${file}.safetensors`),
      );
      const header = readFileSync(files[0]!.path!);
      if ("width" in set) assert.deepEqual([header.readUInt32BE(16), header.readUInt32BE(20)], [64, 48]);
    });

  it("are a flow of Flux's latents, schnell without a shift", async () => {
    const schnell = (await host.loadCheckpoint("flux_schnell_fp8.safetensors")).model;
    const facts = ({ sampling }: Model) => [sampling.name, sampling.prediction, sampling.latentFormat.name];
    assert.deepEqual(
      [facts(model), facts(schnell)],
      [
        ["flux", "flow", "Flux"],
        ["flux-schnell", "flow", "Flux"],
      ],
    );
    assert.deepEqual([model.sampling.sigmas.length, schnell.sampling.sigmas.length], [10_000, 1000]);
  });

  it("predict conditionings of any guidance, length and references as alone", async () => {
    const entries = [
      entry(9, 1, { guidance: 4, pooled_output: randn([1, 64], { seed: 2 }) }),
      entry(9, 2, { guidance: null }),
      entry(9, 3, { reference_latents: [reference(4, 3)] }),
      entry(9, 4, { reference_latents: [reference(4, 3)], reference_latents_method: "index" }),
      entry(12, 5),
    ];
    for (const pair of [entries.slice(0, 2), entries.slice(1, 3), entries.slice(2, 4), entries.slice(3), entries]) {
      const x = randn([pair.length, 16, 5, 6], { seed: 1 });
      const together = await model.predict!(x, 0.7, pair);
      assert.deepEqual(together.shape, x.shape);
      const size = x.size / pair.length;
      for (const [i, each] of pair.entries()) {
        const own = (tensor: Tensor) => Tensor.from(tensor.data.slice(i * size, (i + 1) * size), [1, 16, 5, 6]);
        assert.ok(layerError(own(together), await model.predict!(own(x), 0.7, [each])) < 1e-6);
      }
    }
  });

  it("refuse contexts, latents, ControlNets and references of others", async () => {
    const x = randn([1, 16, 4, 4], { seed: 1 });
    const wide: Conditioning = [[Tensor.zeros([1, 2, 64]), {}]];
    await refuses(model.predict!(x, 0.5, wide), "value.invalid", /^Flux transformer of flux_dev.*\[n, tokens, 48\]/);
    const four = Tensor.zeros([1, 4, 4, 4]);
    await refuses(model.predict!(four, 0.5, [entry(2, 1)]), "tensor.bad-shape", /\[B, 16, h, w\]/);
    await refuses(
      model.predict!(x, 0.5, [entry(2, 1, { control: {} })]),
      "host.missing",
      /does not support ControlNets/,
    );
    const references = [entry(2, 1, { reference_latents: [four] })];
    await refuses(model.predict!(x, 0.5, references), "tensor.bad-shape", /reference latents/);
  });

  it("take the picture of a Control LoRA once, and no other patches", async () => {
    const lora = await host.loadFile!("loras", "flux_control.safetensors");
    const x = randn([1, 16, 4, 4], { seed: 1 });
    const picture = { concat_latent_image: randn([1, 16, 4, 4], { seed: 2 }) };
    const [once] = lora.apply(model, undefined, { model: 1, clip: 1 });
    const [twice] = lora.apply(once, undefined, { model: 1, clip: 1 });
    const predicted = async (of: Model, options: object) => of.predict!(x, 0.5, [entry(3, 1, { ...options })]);
    assert.ok(layerError(await predicted(once, picture), await predicted(once, {})) > 1e-3);
    assert.ok(layerError(await predicted(twice, picture), await predicted(once, picture)) > 1e-3);
    // at strength 0 the model stays as it is
    const [same] = lora.apply(model, undefined, { model: 0, clip: 0 });
    assert.deepEqual((await predicted(same, picture)).data, (await predicted(model, {})).data);
    const fill = await host.loadFile!("diffusion_models", "flux_fill.safetensors");
    const refused = () => lora.apply(fill, undefined, { model: 1, clip: 1 });
    await refuses(
      refused,
      "model.unsupported",
      /expected a model that takes 64 or 128 numbers .* for a Control LoRA, received one that takes 384\.$/,
    );
  });
});

const entry = (options: Record<string, unknown>): Conditioning[number] => [Tensor.zeros([1, 2, 4]), options];
const run = (mask?: Tensor) => ({
  sampling: modelSampling("flux"),
  latent: Tensor.zeros([2, 16, 2, 3]),
  negative: [],
  steps: 1,
  mask,
});
/** Zeros of the VAE in the model's units. */
const BLACK = Math.fround(Math.fround(-0.1159) * 0.3611);

describe("referencesOf", () => {
  it("are none, or latents and where they stand", () => {
    assert.deepEqual(referencesOf(entry({})), { latents: [], places: "offset" });
    const latent = Tensor.zeros([1, 16, 2, 2]);
    const options = { reference_latents: [latent], reference_latents_method: "uxo" };
    assert.deepEqual(referencesOf(entry(options)), { latents: [latent], places: "uxo" });
  });

  it("refuse latents of other models and unknown places", async () => {
    const four = { reference_latents: [Tensor.zeros([1, 4, 2, 2])] };
    await refuses(() => referencesOf(entry(four)), "tensor.bad-shape", /reference latents \[B, 16, h, w\], received/);
    await refuses(() => referencesOf(entry({ reference_latents: 3 })), "tensor.bad-shape", /received 3/);
    const places = { reference_latents_method: "index_timestep_zero" };
    await refuses(() => referencesOf(entry(places)), "value.invalid", /received "index_timestep_zero"/);
  });

  it("of Flux.2 are latents of its own, behind the picture by default", async () => {
    const latent = Tensor.zeros([1, 128, 2, 2]);
    assert.deepEqual(referencesOf(entry({ reference_latents: [latent] }), "flux2"), {
      latents: [latent],
      places: "index",
    });
    const sixteen = { reference_latents: [Tensor.zeros([1, 16, 2, 2])] };
    await refuses(() => referencesOf(entry(sixteen), "flux2"), "tensor.bad-shape", /\[B, 128, h, w\]/);
    const beside = { reference_latents_method: "offset" };
    await refuses(() => referencesOf(entry(beside), "flux2"), "value.invalid", /index or uxo, received "offset"/);
  });

  it("are patches in the model's units after each other", () => {
    assert.equal(referencePatches({ latents: [], places: "offset" }), undefined);
    const latents = [Tensor.zeros([1, 16, 2, 2]), Tensor.full([2, 16, 3, 2], 0.1159)];
    const patches = referencePatches({ latents, places: "offset" })!;
    assert.deepEqual(patches.shape, [2, 3, 64]);
    assert.deepEqual([patches.data[0], Math.abs(patches.data[64]!) < 1e-8], [BLACK, true]);
  });
});

describe("guidanceOf", () => {
  const numbers = (options: Record<string, unknown>) => {
    const { guidance, guided } = guidanceOf(entry(options));
    return [[...guidance.data], ...guided.data];
  };

  it("is 3.5 unless an entry has another, or none", () => {
    const embedded = (value: number) => [...fluxEmbeddings([value]).data];
    assert.deepEqual(numbers({}), [embedded(3.5), 1]);
    assert.deepEqual(numbers({ guidance: 2 }), [embedded(2), 1]);
    assert.deepEqual(numbers({ guidance: null }), [embedded(0), 0]);
  });

  it("is refused if it is not a number", async () => {
    for (const guidance of ["3", Number.NaN, Number.POSITIVE_INFINITY])
      await refuses(() => numbers({ guidance }), "value.invalid", /expected a guidance/);
  });
});

describe("pictureChannels", () => {
  it("are a black picture and a mask of ones if there are none", () => {
    const { data, shape } = pictureChannels(entry({}), run(), true);
    assert.deepEqual(shape, [2, 80, 2, 3]);
    assert.deepEqual([data[0], data[16 * 6 - 1], data[16 * 6], data.at(-1)], [BLACK, BLACK, 1, 1]);
    assert.deepEqual(pictureChannels(entry({}), run(), false).shape, [2, 16, 2, 3]);
  });

  it("hold a mask's pixels cell by cell, not rounded, in 64 channels", () => {
    const mask = Tensor.unfilled([1, 16, 24]);
    for (let i = 0; i < mask.size; i++) mask.data[i] = i / mask.size;
    const { data } = pictureChannels(entry({ concat_mask: mask }), run(), true);
    for (const [channel, row, column] of [
      [0, 0, 0],
      [13, 1, 2],
      [63, 1, 1],
    ] as const) {
      const pixel = (8 * row + (channel >> 3)) * 24 + 8 * column + (channel & 7);
      assert.equal(data[(16 + channel) * 6 + row * 3 + column], mask.data[pixel]);
    }
  });

  it("take the run's own mask, in its size of cells", () => {
    const { data } = pictureChannels(entry({}), run(Tensor.full([1, 2, 3], 0.25)), true);
    assert.ok(data.subarray(16 * 6, 80 * 6).every((value) => value === 0.25));
  });

  it("refuse pictures of other models", async () => {
    const four = entry({ concat_latent_image: Tensor.zeros([1, 4, 2, 3]) });
    await refuses(() => pictureChannels(four, run(), false), "tensor.bad-shape", /with 16 channels/);
    await refuses(() => pictureChannels(entry({ concat_mask: 1 }), run(), true), "tensor.bad-shape", /concat_mask/);
  });
});
