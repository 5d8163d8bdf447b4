import assert from "node:assert/strict";
import { join } from "node:path";
import { type Conditioning, type Host, type Model, modelSampling, randn, render, Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { qwenImagePositions } from "#src/host/checkpoint/qwen-image/model.js";
import { refuses } from "../../../../helpers/errors.js";
import { root, suiteFolder } from "../../../../helpers/folders.js";
import { receiptOf } from "../../../../helpers/graph/receipt-graphs.js";
import { unpackFolders } from "../../../../helpers/models/golden-graphs.js";
import { layerError } from "../../../../helpers/models/layers.js";

const NAME = "qwen_image_tiny.safetensors";

describe("models of Qwen-Image", () => {
  const entry = (tokens: number, seed: number, options: Record<string, unknown> = {}): Conditioning[number] => [
    randn([1, tokens, 32], { seed }),
    options,
  ];
  const reference = (height: number, width: number): Tensor => randn([1, 16, height, width], { seed: 9 });
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

  for (const name of ["qwen-image", "qwen-image-edit"])
    it(`render the example ${name}, and name their files in its receipt`, async () => {
      const set = {
        "1.unet_name": NAME,
        "2.clip_name": "qwen_2.5_vl_tiny.safetensors",
        "3.vae_name": "qwen_image_vae_tiny.safetensors",
        steps: 2,
        // the picture in its own size
        ...(name === "qwen-image" ? { width: 64, height: 48 } : { "8.pixels": ["4", 0] }),
      };
      const options = { host, inputDir: join(root, "examples/input"), outputDir: join(folder(), "out") };
      const { files, warnings } = await render(join(root, `examples/models/${name}.json`), { ...options, set });
      assert.deepEqual(warnings, []);
      const { models: used, runtime } = receiptOf(files[0]!.path!);
      assert.deepEqual(Object.keys(used!).sort(), [
        `diffusion_models/${NAME}`,
        "text_encoders/qwen_2.5_vl_tiny.safetensors",
        "vae/qwen_image_vae_tiny.safetensors",
      ]);
      const networks = Object.keys(runtime!.plans);
      assert.ok(networks.includes("Qwen-Image transformer of qwen_image_tiny.safetensors"));
      assert.equal(
        networks.includes("vision tower Qwen2.5-VL of qwen_2.5_vl_tiny.safetensors"),
        name === "qwen-image-edit",
      );
    });

  it("are a flow of Wan's latents with the levels of Flux", () => {
    const { name, prediction, latentFormat, sigmas } = model.sampling;
    assert.deepEqual([name, prediction, latentFormat.name], ["qwen-image", "flow", "Wan21"]);
    assert.deepEqual(sigmas, modelSampling("flux").sigmas);
  });

  it("predict conditionings of any length and references as alone", async () => {
    const at = (places: string) => ({ reference_latents: [reference(4, 3)], reference_latents_method: places });
    const entries = [
      entry(9, 1),
      entry(9, 2, { reference_latents: [reference(4, 3)] }),
      entry(9, 3, at("index_timestep_zero")),
      entry(9, 4, at("offset")),
      entry(12, 5),
      entry(12, 6),
    ];
    for (const pair of [entries.slice(0, 2), entries.slice(1, 3), entries.slice(2, 4), entries.slice(4), entries]) {
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

  it("place references of UXO as by offset, and others elsewhere", async () => {
    const x = randn([1, 16, 4, 4], { seed: 1 });
    const predicted = (places?: string) =>
      model.predict!(x, 0.7, [
        entry(3, 1, {
          reference_latents: [reference(4, 6), reference(4, 4)],
          ...(places === undefined ? {} : { reference_latents_method: places }),
        }),
      ]);
    const [usual, index, zero, offset, uxo] = await Promise.all(
      [undefined, "index", "index_timestep_zero", "offset", "uxo"].map(predicted),
    );
    assert.deepEqual(index!.data, usual!.data);
    assert.deepEqual(uxo!.data, offset!.data);
    for (const other of [zero!, offset!]) assert.ok(layerError(other, index!) > 1e-4);
  });

  it("refuse contexts, latents, ControlNets, references and changes of others", async () => {
    const x = randn([1, 16, 4, 4], { seed: 1 });
    const wide: Conditioning = [[Tensor.zeros([1, 2, 64]), {}]];
    await refuses(model.predict!(x, 0.5, wide), "value.invalid", /^Qwen-Image transformer of .*\[n, tokens, 32\]/);
    const four = Tensor.zeros([1, 4, 4, 4]);
    await refuses(model.predict!(four, 0.5, [entry(2, 1)]), "tensor.bad-shape", /\[B, 16, h, w\]/);
    const guided = [entry(2, 1, { control: {} })];
    await refuses(model.predict!(x, 0.5, guided), "host.missing", /as model patches \(ModelPatchLoader\)/);
    const references = [entry(2, 1, { reference_latents: [four] })];
    await refuses(model.predict!(x, 0.5, references), "tensor.bad-shape", /reference latents/);
    const places = [entry(2, 1, { reference_latents_method: "beside" })];
    await refuses(model.predict!(x, 0.5, places), "value.invalid", /index or .*offset or uxo, received "beside"/);
    await refuses(() => model.patch!({ node: "ZImageFunControlnet", inputs: {} }), "host.missing", /cannot apply/);
    const patch = async (name: string) => ({
      node: "QwenImageDiffsynthControlnet",
      inputs: {
        model_patch: await host.loadFile!("model_patches", name),
        image: Tensor.full([1, 8, 8, 3], 0.5),
        strength: 1,
      },
    });
    const other = await patch("z_fun_controlnet_v1_tiny.safetensors");
    await refuses(() => model.patch!(other), "value.invalid", /is for a different model family/);
    const own = await patch("q_diffsynth_tiny.safetensors");
    const zImage = await host.loadFile!("diffusion_models", "z_image_tiny.safetensors");
    await refuses(() => zImage.patch!(own), "value.invalid", /is for a different model family/);
  });

  it("are guided by several control nets beside references, which change nothing at strength 0", async () => {
    const model_patch = await host.loadFile!("model_patches", "q_diffsynth_tiny.safetensors");
    const vae = await host.loadFile!("vae", "qwen_image_vae_tiny.safetensors");
    const image = randn([1, 48, 64, 3], { seed: 7 });
    const guided = (strength: number, of: Model): Model =>
      of.patch!({ node: "QwenImageDiffsynthControlnet", inputs: { model_patch, vae, image, strength } });
    const x = randn([2, 16, 7, 9], { seed: 1 });
    const cond = [entry(8, 1, { reference_latents: [reference(4, 6)] })];
    const plain = await model.predict!(x, 0.6, cond);
    assert.ok(layerError(await guided(0, model).predict!(x, 0.6, cond), plain) < 1e-6);
    const once = await guided(0.5, model).predict!(x, 0.6, cond);
    assert.ok(layerError(once, plain) > 1e-3);
    assert.ok(layerError(await guided(0.5, guided(0.5, model)).predict!(x, 0.6, cond), once) > 1e-3);
  });
});

describe("qwenImagePositions", () => {
  it("count from the middle of each picture, the text after the largest of its own", () => {
    const positions = qwenImagePositions(2, [4, 6], [[2, 4]]);
    assert.deepEqual(positions, [
      [1, 1, 1],
      [2, 2, 2],
      [0, -1, -1],
      [0, -1, 0],
      [0, -1, 1],
      [0, 0, -1],
      [0, 0, 0],
      [0, 0, 1],
      [1, 0, -1],
      [1, 0, 0],
    ]);
  });
});
