import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodePng } from "latentkit";
import { root, temporaryFolder } from "./helpers/folders.js";
import { tinyModels } from "./helpers/models/tiny-host.js";
import { latentkit } from "./helpers/process/cli.js";
import { isLlvmpipe, softwareGpu } from "./helpers/process/software-gpu.js";

type Nodes = Readonly<Record<string, { readonly class_type: string; readonly inputs: Record<string, unknown> }>>;

const node = (class_type: string, inputs: Record<string, unknown>) => ({ class_type, inputs });
const SIDE = 128;
/** Enough for a fault of one call to grow. */
const STEPS = 4;

const sampler = (inputs: Record<string, unknown> = {}) =>
  node("KSampler", {
    model: ["model", 0],
    positive: ["positive", 0],
    negative: ["negative", 0],
    latent_image: ["latent", 0],
    seed: 7,
    steps: STEPS,
    cfg: 7,
    sampler_name: "euler",
    scheduler: "normal",
    denoise: 1,
    ...inputs,
  });

/** A picture of a checkpoint; `more` adds nodes or takes the place of these. */
const picture = (checkpoint: string, more: Nodes = {}): Nodes => ({
  model: node("CheckpointLoaderSimple", { ckpt_name: `${checkpoint}.safetensors` }),
  positive: node("CLIPTextEncode", { clip: ["model", 1], text: "a lighthouse in a (storm:1.2)" }),
  negative: node("CLIPTextEncode", { clip: ["model", 1], text: "blurry" }),
  latent: node("EmptyLatentImage", { width: SIDE, height: SIDE, batch_size: 1 }),
  samples: sampler(),
  image: node("VAEDecode", { samples: ["samples", 0], vae: ["model", 2] }),
  save: node("SaveImage", { images: ["image", 0], filename_prefix: "picture" }),
  ...more,
});

const photo = {
  file: node("LoadImage", { image: "lake.png" }),
  photo: node("ImageScale", {
    image: ["file", 0],
    upscale_method: "lanczos",
    width: SIDE,
    height: SIDE,
    crop: "disabled",
  }),
};

const GRAPHS: Readonly<Record<string, Nodes>> = {
  "SD 1": picture("tiny-sd1"),
  "SD 2": picture("tiny-sd2"),
  SDXL: picture("tiny-sdxl"),
  "a LoRA": picture("tiny-sd1", {
    lora: node("LoraLoader", {
      model: ["model", 0],
      clip: ["model", 1],
      lora_name: "tiny-sd1-lora.safetensors",
      strength_model: 0.8,
      strength_clip: 0.8,
    }),
    positive: node("CLIPTextEncode", { clip: ["lora", 1], text: "a lighthouse" }),
    samples: sampler({ model: ["lora", 0] }),
  }),
  "a ControlNet": picture("tiny-sd1", {
    ...photo,
    net: node("ControlNetLoader", { control_net_name: "tiny-sd1-control.safetensors" }),
    control: node("ControlNetApplyAdvanced", {
      positive: ["positive", 0],
      negative: ["negative", 0],
      control_net: ["net", 0],
      image: ["photo", 0],
      strength: 0.8,
      start_percent: 0,
      end_percent: 1,
    }),
    samples: sampler({ positive: ["control", 0], negative: ["control", 1] }),
  }),
  inpainting: picture("tiny-sd1-inpainting", {
    ...photo,
    mask: node("SolidMask", { value: 1, width: SIDE, height: SIDE }),
    kept: node("SolidMask", { value: 0, width: SIDE / 2, height: SIDE }),
    right: node("MaskComposite", { destination: ["mask", 0], source: ["kept", 0], x: 0, y: 0, operation: "multiply" }),
    inpaint: node("InpaintModelConditioning", {
      positive: ["positive", 0],
      negative: ["negative", 0],
      vae: ["model", 2],
      pixels: ["photo", 0],
      mask: ["right", 0],
      noise_mask: true,
    }),
    samples: sampler({ positive: ["inpaint", 0], negative: ["inpaint", 1], latent_image: ["inpaint", 2] }),
  }),
  "a second pass after an upscale model": picture("tiny-sd1", {
    first: sampler(),
    small: node("VAEDecode", { samples: ["first", 0], vae: ["model", 2] }),
    upscaler: node("UpscaleModelLoader", { model_name: "tiny-4x.safetensors" }),
    enlarged: node("ImageUpscaleWithModel", { upscale_model: ["upscaler", 0], image: ["small", 0] }),
    scaled: node("ImageScale", {
      image: ["enlarged", 0],
      upscale_method: "area",
      width: 1.5 * SIDE,
      height: 1.5 * SIDE,
      crop: "disabled",
    }),
    again: node("VAEEncode", { pixels: ["scaled", 0], vae: ["model", 2] }),
    samples: sampler({ latent_image: ["again", 0], denoise: 0.5 }),
  }),
};

const describeOnLlvmpipe = isLlvmpipe ? describe : () => {};

describeOnLlvmpipe("renders on WebGPU", () => {
  const folder = temporaryFolder();
  /** Keeps the trial's verdict from one render to the next. */
  const cache = mkdtempSync(join(tmpdir(), "latentkit-test-"));
  after(() => rmSync(cache, { recursive: true }));

  for (const [name, graph] of Object.entries(GRAPHS))
    it(`${name}: within 1 of 255 of the CPU's picture @long`, async function () {
      const path = join(folder(), "graph.json");
      writeFileSync(path, JSON.stringify(graph));
      const paintedBy = async (device: string) => {
        const out = join(folder(), device);
        const args = ["render", path, "--models", tinyModels(), "--input", join(root, "test/graphs/input"), "--quiet"];
        const env = { ...softwareGpu(this), LATENTKIT_CACHE_DIR: cache };
        const { code, stderr } = await latentkit([...args, "--models-device", device, "--out", out], { env });
        assert.equal(code, 0, stderr);
        return decodePng(readFileSync(join(out, "picture_00001_.png")));
      };
      const [expected, received] = [await paintedBy("cpu"), await paintedBy("webgpu")];
      assert.deepEqual([received.width, received.height], [expected.width, expected.height]);
      const differences = received.data.map((value, i) => Math.abs(value - expected.data[i]!));
      assert.ok(Math.max(...differences) <= 1, `differs by ${Math.max(...differences)}`);
      assert.ok(new Set(expected.data).size > 64, "a picture");
    });
});
