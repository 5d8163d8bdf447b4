import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Conditioning, type Host, type Model, modelSampling, randn, render, Tensor } from "latentkit";
import { createCheckpointHost, listModels } from "latentkit/models";
import type { ModelPart } from "#src/host/checkpoint/session/model-part.js";
import type { Runtime } from "#src/host/checkpoint/session/runtime.js";
import { buildTaesdDecoder } from "#src/host/checkpoint/vae/taesd.js";
import { listedNetwork } from "#src/host/checkpoint/weights/network.js";
import type { ZImageConfig } from "#src/host/checkpoint/z-image/build.js";
import { BuiltZImage, zImagePositions } from "#src/host/checkpoint/z-image/model.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, suiteFolder } from "../../../../helpers/folders.js";
import { receiptOf } from "../../../../helpers/graph/receipt-graphs.js";
import { flowLayers } from "../../../../helpers/models/golden-flow.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { f32, writeWeights } from "../../../../helpers/models/weight-file.js";

const NAME = "z_image_tiny.safetensors";
const ALONE = "Z-Image, without text encoder and VAE";
const context = (tokens: number, seed: number): Conditioning =>
  [[randn([1, tokens, 32], { seed }), {}]] as unknown as Conditioning;

/** Sizes of Z-Image's transformer that its rotations and time depend on. */
const SIZES = { channels: 16, headSize: 16, captionWidth: 32 };

describe("BuiltZImage", () => {
  it("sends the same rotations for the same sizes, of eight in turn too", async () => {
    const sent: unknown[] = [];
    const part = { label: "Z-Image", config: SIZES, weights: new Map(), session: () => ({}) };
    const runtime = {
      run: async (_: unknown, feeds: Readonly<Record<string, Tensor>>) => {
        sent.push(feeds.image_cos);
        return { out: feeds.x };
      },
    };
    const network = new BuiltZImage(runtime as unknown as Runtime, part as unknown as ModelPart<ZImageConfig>);
    const latent = Tensor.zeros([1, 16, 4, 4]);
    const run = network.forRun({ sampling: modelSampling("z-image"), latent, negative: [], steps: 1 });
    const entry = context(8, 1)[0]!;
    const predict = async (rows: number): Promise<unknown> => {
      const x = Tensor.zeros([1, 16, rows, 4]);
      const call = { x, noisy: x, timestep: 0.5, context: entry[0], labels: {}, entry, entries: [entry], sigma: 0.5 };
      await run.predict(call);
      return sent.at(-1);
    };
    const sizes = [2, 4, 6, 8, 10, 12, 14, 16];
    const first: unknown[] = [];
    for (const rows of sizes) first.push(await predict(rows));
    assert.equal(new Set(first).size, sizes.length);
    for (let turn = 0; turn < 2; turn++)
      for (const [i, rows] of sizes.entries()) assert.equal(await predict(rows), first[i], `${rows} rows`);
  });
});

describe("models of Z-Image", () => {
  const folder = suiteFolder();
  let host: Host;
  let model: Model;
  before(async () => {
    unpackFolders(
      join(root, "test/golden/models-z-qwen"),
      ["diffusion_models", "text_encoders", "vae", "model_patches", "loras"],
      folder(),
    );
    host = createCheckpointHost({ models: folder() });
    model = await host.loadFile!("diffusion_models", NAME);
  });
  after(() => host.close?.());

  it("render the example, in their own words in lists and receipts", async () => {
    const set = {
      "1.unet_name": NAME,
      "2.clip_name": "qwen_3_tiny.safetensors",
      "3.vae_name": "ae_tiny.safetensors",
      prompt: "two dogs running on mars, film grain",
      width: 64,
      height: 48,
      steps: 2,
    };
    const graph = join(root, "examples/models/z-image.json");
    const { files, warnings } = await render(graph, { host, set, outputDir: join(folder(), "out") });
    assert.deepEqual(warnings, []);
    const { models: used, runtime } = receiptOf(files[0]!.path!);
    assert.deepEqual(Object.keys(used!).sort(), [
      `diffusion_models/${NAME}`,
      "text_encoders/qwen_3_tiny.safetensors",
      "vae/ae_tiny.safetensors",
    ]);
    assert.deepEqual(Object.keys(runtime!.plans).sort(), [
      "VAE of ae_tiny.safetensors",
      "Z-Image transformer of z_image_tiny.safetensors",
      "text encoder Qwen3 of qwen_3_tiny.safetensors",
    ]);
  });

  it("are listed with their families and types, beside those of Qwen-Image", async () => {
    const listed = await listModels({ models: folder(), hashes: false });
    assert.deepEqual(
      listed.map(({ kind, name, family, dtypes }) => [`${kind}/${name}`, family, dtypes.join(" ")]),
      [
        ["loras/q_aitoolkit.safetensors", "LoRA (ai-toolkit)", "BF16"],
        ["loras/q_lightning.safetensors", "LoRA (plain names)", "BF16"],
        ["loras/z_aitoolkit.safetensors", "LoRA (ai-toolkit)", "BF16"],
        ["loras/z_diffusers.safetensors", "LoRA (diffusers)", "BF16"],
        ["loras/z_kohya.safetensors", "LoRA (kohya)", "F16"],
        ["loras/z_lycoris.safetensors", "LoRA (LyCORIS)", "BF16"],
        ["vae/ae_tiny.safetensors", "VAE, 16 channels", "BF16"],
        ["vae/qwen_image_vae_tiny.safetensors", "VAE of Wan 2.1 and Qwen-Image", "BF16"],
        ["diffusion_models/qwen_image_tiny.safetensors", "Qwen-Image, without text encoder and VAE", "BF16"],
        ["diffusion_models/z_image_tiny.safetensors", ALONE, "BF16"],
        ["diffusion_models/z_image_tiny_diffusers.safetensors", ALONE, "BF16"],
        ["diffusion_models/z_image_tiny_fp8_e4m3fn.safetensors", ALONE, "F8_E4M3 BF16"],
        ["diffusion_models/z_image_tiny_fp8_scaled.safetensors", ALONE, "F8_E4M3 BF16"],
        ["text_encoders/qwen_2.5_vl_tiny.safetensors", "text encoder Qwen2.5-VL", "BF16"],
        ["text_encoders/qwen_3_tiny.safetensors", "text encoder Qwen3", "BF16"],
        ["model_patches/q_diffsynth_tiny.safetensors", "ControlNet of Qwen-Image (DiffSynth)", "BF16"],
        ["model_patches/z_fun_controlnet_v1_tiny.safetensors", "ControlNet of Z-Image (Fun), 16 channels", "BF16"],
        ["model_patches/z_fun_controlnet_v2_tiny.safetensors", "ControlNet of Z-Image (Fun), 33 channels", "BF16"],
      ],
    );
  });

  it("are a flow of Flux's latents with a shift of 3", () => {
    const { name, prediction, latentFormat, sigmaMax } = model.sampling;
    assert.deepEqual([name, prediction, latentFormat.name, sigmaMax], ["z-image", "flow", "Flux", 1]);
    assert.deepEqual(model.sampling.sigmas, modelSampling("auraflow", { shift: 3 }).sigmas);
  });

  it("have previews of a tiny decoder with 16 channels", async () => {
    const network = listedNetwork();
    const sizes = { channels: 8, latentChannels: 16, hasDecoder: true, hasEncoder: false };
    buildTaesdDecoder(network, sizes);
    const tensors = [...network.listed].map(([key, shape], seed) => [
      key,
      f32(shape, [...randn(shape, { seed }).data]),
    ]);
    const approx = join(folder(), "vae_approx");
    mkdirSync(approx);
    writeWeights(join(approx, "taef1_decoder.safetensors"), Object.fromEntries(tensors));
    const own = createCheckpointHost({ models: folder() });
    try {
      const { preview } = await own.loadFile!("diffusion_models", NAME);
      const [dark, light] = await Promise.all([1, 2].map((seed) => preview!(randn([1, 16, 4, 3], { seed }))));
      assert.deepEqual(dark!.shape, [1, 32, 24, 3]);
      assert.notDeepEqual(dark!.data, light!.data);
    } finally {
      await own.close();
      rmSync(approx, { recursive: true });
    }
  });

  it("predict conditionings of several lengths as alone", async () => {
    const x = randn([2, 16, 8, 6], { seed: 1 });
    const [a, b] = [context(9, 2)[0]!, context(40, 3)[0]!];
    const both = await model.predict!(x, 0.7, [a, b]);
    assert.deepEqual(both.shape, x.shape);
    const size = x.size / 2;
    for (const [i, entry] of [a, b].entries()) {
      const part = Tensor.from(x.data.slice(i * size, (i + 1) * size), [1, 16, 8, 6]);
      const alone = await model.predict!(part, 0.7, [entry]);
      assert.deepEqual(both.data.slice(i * size, (i + 1) * size), alone.data);
    }
  });

  it("refuse contexts, latents, ControlNets and changes of others", async () => {
    const x = randn([1, 16, 8, 8], { seed: 1 });
    const wide = [[randn([1, 8, 64], { seed: 1 }), {}]] as unknown as Conditioning;
    const expected = /^Z-Image transformer of z_image_tiny\.safetensors: expected a conditioning \[n, tokens, 32\]/;
    await refuses(model.predict!(x, 0.5, wide), "value.invalid", expected);
    const four = randn([1, 4, 8, 8], { seed: 1 });
    await refuses(model.predict!(four, 0.5, context(8, 1)), "tensor.bad-shape", /a latent \[B, 16, h, w\]/);
    const guided = [[context(8, 1)[0]![0], { control: {} }]] as unknown as Conditioning;
    await refuses(model.predict!(x, 0.5, guided), "host.missing", /as model patches \(ModelPatchLoader\)/);
    await refuses(() => model.patch!({ node: "FreeU", inputs: {} }), "host.missing", /cannot apply FreeU/);
  });

  it("take the times of other flows as the network has them", async () => {
    const x = randn([1, 16, 8, 8], { seed: 1 });
    const flow = model.patch!({ node: "ModelSamplingSD3", inputs: { shift: 3 } });
    assert.deepEqual(
      (await flow.predict!(x, 0.5, context(8, 1))).data,
      (await model.predict!(x, 0.5, context(8, 1))).data,
    );
  });

  it("refuse model patches that are not for them", async () => {
    const patch = await host.loadFile!("model_patches", "z_fun_controlnet_v1_tiny.safetensors");
    const vae = await host.loadFile!("vae", "ae_tiny.safetensors");
    const image = Tensor.full([1, 64, 64, 3], 0.5);
    const inputs = { model_patch: patch, vae, image, strength: 1 };
    const node = "ZImageFunControlnet";
    await refuses(
      () => model.patch!({ node, inputs: { ...inputs, model_patch: {} } }),
      "host.missing",
      /cannot run a model patch that another host loaded/,
    );
    await refuses(
      () => model.patch!({ node, inputs: { ...inputs, image: undefined } }),
      "value.invalid",
      /expected an image or an inpaint_image/,
    );
    const inpainting = { ...inputs, image: undefined, inpaint_image: image };
    const x = randn([1, 16, 8, 8], { seed: 1 });
    await refuses(
      model.patch!({ node, inputs: inpainting }).predict!(x, 0.5, context(8, 1)),
      "value.invalid",
      /expected an image, received only an inpaint_image/,
    );
    const four = { ...vae, encode: async () => Tensor.zeros([1, 4, 8, 8]) };
    await refuses(
      model.patch!({ node, inputs: { ...inputs, vae: four } }).predict!(x, 0.5, context(8, 1)),
      "value.invalid",
      /a VAE with 16 latent channels/,
    );
  });

  it("are guided by several control nets, by the same picture for each latent of a batch", async () => {
    const vae = await host.loadFile!("vae", "ae_tiny.safetensors");
    const guided = async (strengths: readonly number[], of: Model = model): Promise<Model> => {
      const [strength, ...others] = strengths;
      if (strength === undefined) return of;
      const name = `z_fun_controlnet_v${others.length + 1}_tiny.safetensors`;
      const model_patch = await host.loadFile!("model_patches", name);
      const image = randn([1, 48, 64, 3], { seed: 7 });
      const inputs = { model_patch, vae, image, strength };
      return guided(others, of.patch!({ node: "ZImageFunControlnet", inputs }));
    };
    const x = randn([1, 16, 7, 9], { seed: 1 });
    const twice = Tensor.from(Float32Array.from([...x.data, ...x.data]), [2, 16, 7, 9]);
    const both = await guided([0.5, 0.7]);
    const one = await both.predict!(x, 0.6, context(8, 1));
    const batch = await both.predict!(twice, 0.6, context(8, 1));
    for (const i of [0, 1]) {
      const part = Tensor.from(batch.data.slice(i * x.size, (i + 1) * x.size), x.shape);
      assert.ok(layerError(part, one) < 1e-5);
    }
    const plain = await model.predict!(x, 0.6, context(8, 1));
    assert.ok(layerError(one, plain) > 1e-3);
    assert.ok(layerError(await (await guided([0, 0])).predict!(x, 0.6, context(8, 1)), plain) < 1e-6);
  });

  it("have text encoders that read prompts whole, of a bounded length", async () => {
    const clip = await host.loadFile!("text_encoders", "qwen_3_tiny.safetensors", undefined, { type: "lumina2" });
    assert.deepEqual(clip.encoders, []);
    const [[cond, options]] = (await clip.encodeText!("")) as [Conditioning[number]];
    assert.deepEqual([cond.shape, options], [[1, 8, 32], {}]);
    const expected =
      /^text encoder Qwen3 of qwen_3_tiny\.safetensors: expected a prompt of at most 4096 tokens, received 5008/;
    await refuses(clip.encodeText!("1".repeat(5000)), "value.out-of-range", expected);
    for (const [type, reason] of [
      ["flux", /expected one of the types lumina2, flux2 for a text encoder Qwen3, received type "flux"/],
      ["flux2", /a text encoder Qwen3 of 28 layers for Flux\.2, received one of 4/],
    ] as const)
      await refuses(
        host.loadFile!("text_encoders", "qwen_3_tiny.safetensors", undefined, { type }),
        "model.unsupported",
        reason,
      );
  });

  it("take LoRAs of each layout in the layout of diffusers too", async () => {
    const kept = await host.loadFile!("diffusion_models", "z_image_tiny_diffusers.safetensors");
    for (const style of ["kohya", "aitoolkit", "diffusers", "lycoris"]) {
      const lora = await host.loadFile!("loras", `z_${style}.safetensors`);
      assert.equal(lora.unmatched!(kept, undefined), lora.unmatched!(model, undefined), style);
      const [x, cond] = [randn([1, 16, 4, 4], { seed: 1 }), context(9, 2)];
      const predicted = async (of: Model) => {
        const [changed] = lora.apply(of, undefined, { model: 0.8, clip: 0 });
        return changed.predict!(x, 0.7, cond);
      };
      assert.ok(layerError(await predicted(kept), await predicted(model)) < 5e-6, style);
    }
  });

  it("take LoRAs, and leave their text encoder as it is", async () => {
    const clip = await host.loadFile!("text_encoders", "qwen_3_tiny.safetensors", undefined, { type: "lumina2" });
    const lora = await host.loadFile!("loras", "z_aitoolkit.safetensors");
    assert.equal(lora.unmatched!(model, clip), undefined);
    const [changed, same] = lora.apply(model, clip, { model: 1, clip: 1 });
    assert.equal(same, clip);
    const x = randn([1, 16, 8, 8], { seed: 1 });
    const [before, after] = [model, changed].map((each) => each.predict!(x, 0.5, context(8, 1)));
    assert.ok(layerError(await after!, await before!) > 1e-3);
  });
});

describe("zImagePositions", () => {
  it("count captions with their padding, and cells by row and column after them", () => {
    const { caption, image } = zImagePositions(3, [2, 3], 8);
    assert.deepEqual([caption.length, caption[0], caption[7]], [8, [1, 0, 0], [8, 0, 0]]);
    assert.deepEqual(image, [
      [9, 0, 0],
      [9, 0, 1],
      [9, 0, 2],
      [9, 1, 0],
      [9, 1, 1],
      [9, 1, 2],
      [0, 0, 0],
      [0, 0, 0],
    ]);
    assert.equal(zImagePositions(8, [2, 4], 8).image.length, 8);
  });

  it("are those of the vectors' lengths", () => {
    for (const { tokens } of flowLayers("z_image").cases) {
      const { caption, image } = zImagePositions(tokens.caption, [1, tokens.image], 32);
      assert.deepEqual([caption.length, image.length], [tokens.caption_padded, tokens.image_padded]);
    }
  });
});
