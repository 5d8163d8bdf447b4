import assert from "node:assert/strict";
import { join } from "node:path";
import {
  type Conditioning,
  type ImageAdapter,
  type Model,
  randn,
  render,
  type ShownPictures,
  Tensor,
  validateGraph,
} from "latentkit";
import { type CheckpointHost, createCheckpointHost } from "latentkit/models";
import { refuses } from "../../../../helpers/errors.js";
import { root, suiteFolder } from "../../../../helpers/folders.js";
import { receiptOf } from "../../../../helpers/graph/receipt-graphs.js";
import { unpackAdapters } from "../../../../helpers/models/golden-adapters.js";
import { layerError } from "../../../../helpers/models/layers.js";

const H = "CLIP-ViT-H-14-laion2B-s32B-b79K.safetensors";
const BIG_G = "CLIP-ViT-bigG-14-laion2B-39B-b160k.safetensors";

describe("image adapters of the checkpoint host", () => {
  const folder = suiteFolder();
  let host: CheckpointHost;
  let model: Model;
  before(async () => {
    unpackAdapters(folder());
    host = createCheckpointHost({ models: folder() });
    ({ model } = await host.loadCheckpoint("sdxl.safetensors"));
  });
  after(() => host.close());

  const adapterOf = (name: string) => host.loadFile!("ipadapter", `ip-adapter${name}.safetensors`);
  const encoderOf = (name: string) => host.loadFile!("clip_vision", name);
  const cond: Conditioning = [[randn([1, 77, 192], { seed: 1 }), { pooled_output: randn([1, 128], { seed: 2 }) }]];
  const x = randn([1, 4, 8, 8], { seed: 3 });
  const picture = Tensor.full([1, 224, 224, 3], 0.5);

  async function shownBy(adapter: ImageAdapter, changes: Partial<ShownPictures>, of = model): Promise<Model> {
    const encoder = await encoderOf(H);
    const [embeds, negative] = [await adapter.embed(encoder, picture), await adapter.embedNone(encoder)];
    const usual = { isPerLatent: false, isSwapped: false, hasMiddle: false, maskMethod: "bilinear" } as const;
    const how = { weights: new Array(11).fill(1), scaling: "V only", start: 0, end: 1 } as const;
    return adapter.show(of, { embeds, negative, ...usual, ...how, ...changes });
  }

  it("lists its files and says what they are", async () => {
    assert.ok(host.files!("ipadapter")!.includes("ip-adapter_sdxl_vit-h.safetensors"));
    assert.equal((await adapterOf("_sdxl_vit-h")).isSdxl, true);
    assert.equal((await adapterOf("_sd15")).isSdxl, false);
  });

  it("renders the example, and names its files in the receipt", async () => {
    const set = { "1.ckpt_name": "sdxl.safetensors", width: 64, height: 64, steps: 2 };
    const [inputDir, outputDir] = [join(root, "examples/input"), join(folder(), "example")];
    const graph = join(root, "examples/models/ip-adapter.json");
    const { files, warnings, error } = await render(graph, { host, set, inputDir, outputDir });
    assert.deepEqual([error?.message, warnings], [undefined, []]);
    assert.deepEqual(Object.keys(receiptOf(files[0]!.path!).models!).sort(), [
      "checkpoints/sdxl.safetensors",
      `clip_vision/${H}`,
      "ipadapter/ip-adapter-plus_sdxl_vit-h.safetensors",
    ]);
  });

  it("changes the prediction in its range, by its weights, in the middle only if asked to", async () => {
    const adapter = await adapterOf("_sdxl_vit-h");
    const plain = await model.predict!(x, 2, cond);
    const at = async (changes: Partial<ShownPictures>, sigma = 2) =>
      (await shownBy(adapter, changes)).predict!(x, sigma, cond);
    assert.ok(layerError(await at({}), plain) > 1e-3);
    assert.ok(layerError(await at({ weights: new Array(11).fill(0) }), plain) < 1e-6);
    assert.ok(layerError(await at({ start: 0.9 }), plain) < 1e-6);
    const middle = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    assert.ok(layerError(await at({ weights: middle }), plain) < 1e-6);
    assert.ok(layerError(await at({ weights: middle, hasMiddle: true }), plain) > 1e-5);
    assert.ok(layerError(await at({ mask: Tensor.zeros([1, 64, 64]) }), plain) < 1e-6);
  });

  it("shows each latent its own picture, or all", async () => {
    const adapter = await adapterOf("_sdxl_vit-h");
    const encoder = await encoderOf(H);
    const pictures = Tensor.zeros([2, 224, 224, 3]);
    pictures.data.fill(1, 0, pictures.size / 2);
    const embeds = await adapter.embed(encoder, pictures);
    const negative = await adapter.embed(encoder, pictures);
    const two = Tensor.from([...x.data, ...x.data], [2, 4, 8, 8]);
    const half = ({ data }: Tensor, i: number) => Tensor.from(data.slice(i * x.size, (i + 1) * x.size), x.shape);
    const own = await (await shownBy(adapter, { embeds, negative, isPerLatent: true })).predict!(two, 2, cond);
    assert.ok(layerError(half(own, 0), half(own, 1)) > 1e-4);
    const all = await (await shownBy(adapter, { embeds, negative })).predict!(two, 2, cond);
    assert.ok(layerError(half(all, 0), half(all, 1)) < 1e-6);
  });

  it("multiplies the pixels by a mask", async () => {
    const adapter = await adapterOf("_sdxl_vit-h");
    const encoder = await encoderOf(H);
    const embed = async (mask?: Tensor) => adapter.embed(encoder, picture, mask);
    assert.ok(layerError(await embed(Tensor.full([1, 300, 200], 1)), await embed()) < 1e-5);
    assert.ok(layerError(await embed(Tensor.zeros([1, 300, 200])), await embed()) > 1e-4);
  });

  it("refuses what does not fit, naming both", async () => {
    const [sdxl, sd1, plus] = [await adapterOf("_sdxl_vit-h"), await adapterOf("_sd15"), await adapterOf("-plus_sd15")];
    const bigG = await encoderOf(BIG_G);
    const family =
      /^IPAdapter of ip-adapter_sd15\.safetensors is for a different model family than UNet of sdxl\.safetensors\.$/;
    await refuses(shownBy(sd1, {}), "value.invalid", family);
    const encoder = /embeddings have 48 numbers, received CLIP vision of CLIP-ViT-bigG.* with 128\.$/;
    await refuses(sdxl.embed(bigG, picture), "value.invalid", encoder);
    await refuses(sdxl.embed({ encode: async () => ({}) }, picture), "host.missing", /encoder of another host/);
    await refuses(plus.embedNone(undefined), "value.invalid", /expected a CLIP vision encoder for the negative side/);
    const embeds = Tensor.zeros([1, 7]);
    await refuses(
      shownBy(sdxl, { embeds, negative: embeds }),
      "value.invalid",
      /pictures \[n, 48\], received \[1, 7\]/,
    );
    const foreign = { sampling: model.sampling } as Model;
    await refuses(shownBy(sdxl, {}, foreign), "host.missing", /cannot change a model of another host/);
  });

  /** A graph with the files of a preset, up to the picture. */
  const presetGraph = (preset: string) => ({
    "1": { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "sdxl.safetensors" } },
    "2": { class_type: "IPAdapterUnifiedLoader", inputs: { model: ["1", 0], preset } },
    "3": { class_type: "EmptyImage", inputs: { width: 64, height: 64, batch_size: 1, color: 255 } },
    "4": {
      class_type: "IPAdapter",
      inputs: {
        model: ["2", 0],
        ipadapter: ["2", 1],
        image: ["3", 0],
        weight: 1,
        start_at: 0,
        end_at: 1,
        weight_type: "standard",
      },
    },
    "5": { class_type: "CLIPTextEncode", inputs: { clip: ["1", 1], text: "a cat" } },
    "6": { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
    "7": {
      class_type: "KSampler",
      inputs: {
        model: ["4", 0],
        seed: 1,
        steps: 1,
        cfg: 1,
        sampler_name: "euler",
        scheduler: "normal",
        positive: ["5", 0],
        negative: ["5", 0],
        latent_image: ["6", 0],
        denoise: 1,
      },
    },
    "8": { class_type: "VAEDecode", inputs: { samples: ["7", 0], vae: ["1", 2] } },
    "9": { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "a" } },
  });

  it("has the files of a preset in a receipt, by the model's family", async () => {
    const outputDir = join(folder(), "out");
    const { status, files, error } = await render(presetGraph("PLUS (high strength)"), { host, outputDir });
    assert.equal(status, "success", error?.message);
    const receipt = receiptOf(files[0]!.path);
    assert.deepEqual(Object.keys(receipt.models!), [
      "checkpoints/sdxl.safetensors",
      `clip_vision/${H}`,
      "ipadapter/ip-adapter-plus_sdxl_vit-h.safetensors",
    ]);
    const networks = Object.keys(receipt.runtime!.plans);
    assert.ok(networks.includes("UNet of sdxl.safetensors"), `${networks}`);
  });

  it("refuses a preset without its files before the run", () => {
    const sentencesOf = (preset: string) =>
      Object.values(validateGraph(presetGraph(preset), { host }).nodeErrors).flatMap(({ errors }) =>
        errors.map(({ sentence }) => sentence),
      );
    assert.deepEqual(sentencesOf("PLUS (high strength)"), []);
    assert.match(
      sentencesOf("PLUS FACE (portraits)").join(),
      /"plus\?face\?sdxl\?vit\?h\.safetensors" below ipadapter/,
    );
    assert.match(
      sentencesOf("LIGHT - SD1.5 only (low strength)").join(),
      /has no IPAdapter of SDXL, which the model is/,
    );
    const [lack] = Object.values(validateGraph(presetGraph("PLUS (high strength)"), {}).nodeErrors["2"]!.errors);
    assert.match(lack!.sentence, /IPAdapterUnifiedLoader \(node 2, host "preview" has no IPAdapters\)/);
  });
});
