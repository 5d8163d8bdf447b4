#!/usr/bin/env node
// Writes a small checkpoint of every family, and files of each kind beside them, into a models folder as ComfyUI lays it out:
// seeded random weights, which paint nothing but take the whole way of real files in seconds.
// Usage: make-tiny-models.mjs DIR
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { toHalves } from "../dist/host/checkpoint/runtime/onnx-session.js";
import { buildTextEncoder } from "../dist/host/checkpoint/text-encoder/build.js";
import { buildUnet } from "../dist/host/checkpoint/unet/build.js";
import { buildControlNet } from "../dist/host/checkpoint/unet/control.js";
import { buildUpscaler } from "../dist/host/checkpoint/upscaler/build.js";
import { buildVaeDecoder, buildVaeEncoder } from "../dist/host/checkpoint/vae/build.js";
import { buildTaesdDecoder, buildTaesdEncoder } from "../dist/host/checkpoint/vae/taesd.js";
import { levelsOfLdm, renaming, unetModules } from "../dist/host/checkpoint/weights/diffusers-names.js";
import { listedNetwork } from "../dist/host/checkpoint/weights/network.js";
import { randn } from "../dist/index.js";

/** Shapes of weights by key. @typedef {Record<string, readonly number[]>} Shapes */

const HIDDEN = 64;
/** Numbers of sizes and crops in the label of SDXL and of its refiner, each embedded in 256. */
const SIZES = { sdxl: 6 * 256, refiner: 5 * 256 };
/** Bias by whose deviation SD 2 with v-prediction is told from that with eps. */
const V_KEY = "model.diffusion_model.output_blocks.11.1.transformer_blocks.0.norm1.bias";

/**
 * Two blocks in each level on the way down, three on the way up. `depths` are those of the transformers by level.
 * @returns {import("../dist/host/checkpoint/unet/build.js").UnetConfig}
 */
function unet({ channels, depths, inChannels = 4, contextDim, labelDim = undefined, heads }) {
  const last = channels.length - 1;
  const level = (index) => ({ kind: /** @type {const} */ ("res"), channels: channels[index], depth: depths[index] });
  /** @type {import("../dist/host/checkpoint/unet/build.js").UnetBlock[]} */
  const input = [{ kind: "conv", channels: channels[0], depth: 0 }];
  for (let index = 0; index <= last; index++) {
    input.push(level(index), level(index));
    if (index < last) input.push({ kind: "down", channels: channels[index], depth: 0 });
  }
  const output = [];
  for (let index = last; index >= 0; index--)
    for (let block = 0; block < 3; block++) output.push({ ...level(index), upsample: block === 2 && index > 0 });
  return {
    inChannels,
    outChannels: 4,
    modelChannels: channels[0],
    contextDim,
    ...(labelDim === undefined ? {} : { labelDim }),
    linearProjection: "size" in heads,
    heads,
    input,
    middle: { kind: "res", channels: channels[last], depth: Math.max(depths[last], 1) },
    output,
  };
}

/** @param {"l" | "h" | "g"} name */
const encoder = (name, layers = 2) => ({
  name,
  layout: /** @type {"hf" | "openclip"} */ (name === "l" ? "hf" : "openclip"),
  hidden: HIDDEN,
  layers,
  missing: 0,
  heads: 1,
  mlp: 2 * HIDDEN,
  vocabulary: 49408,
  positions: /** @type {const} */ (77),
  activation: /** @type {"quick-gelu" | "gelu"} */ (name === "l" ? "quick-gelu" : "gelu"),
  ...(name === "l" ? {} : { projection: { key: "text_projection", transposed: false, size: HIDDEN } }),
});

const VAE = {
  family: /** @type {const} */ ("sd"),
  channels: 32,
  multipliers: [1, 1, 1, 1],
  blocks: 1,
  encoderChannels: 32,
  latentChannels: 4,
  normalised: false,
  quantised: true,
  attention: /** @type {const} */ (4),
  hasEncoder: true,
};
// transformers in the third level alone, so that pictures of usual sizes take seconds
const SD1 = { channels: [32, 32, 64, 64], depths: [0, 0, 1, 0], contextDim: HIDDEN, heads: { count: 8 } };
// v-prediction is read from a transformer of the first level
const SD2 = { channels: [64, 64, 64, 64], depths: [1, 0, 0, 0], contextDim: HIDDEN, heads: { size: 64 } };
const SDXL = { channels: [32, 32, 64], depths: [0, 0, 2], heads: { size: 64 } };

/** Shapes that a builder asks for, under a prefix. @returns {Shapes} */
function shapesOf(prefix, build) {
  const network = listedNetwork();
  build(network);
  return Object.fromEntries([...network.listed].map(([key, shape]) => [prefix + key, shape]));
}

const unetShapes = (config) => shapesOf("model.diffusion_model.", (network) => buildUnet(network, config));
const vaeShapes = (prefix) => ({
  ...shapesOf(prefix, (network) => buildVaeEncoder(network, VAE)),
  ...shapesOf(prefix, (network) => buildVaeDecoder(network, VAE)),
});
const textShapes = (prefix, config) =>
  shapesOf(prefix, (network) => buildTextEncoder(network, config, { layer: -1, finalNorm: true }));

const L = "cond_stage_model.transformer.text_model.";
const H = "cond_stage_model.model.";
const FIRST = "conditioner.embedders.0.transformer.text_model.";
const checkpoint = (config, texts) => ({
  ...unetShapes(unet(config)),
  ...texts,
  ...vaeShapes("first_stage_model."),
});

/** A LoRA of rank 4 for all attentions and MLPs, in kohya's names. @param {Shapes} model @returns {Shapes} */
function loraShapes(model) {
  const unetPrefix = "model.diffusion_model.";
  const own = Object.keys(model).flatMap((key) => (key.startsWith(unetPrefix) ? [key.slice(unetPrefix.length)] : []));
  const toDiffusers = renaming(unetModules(levelsOfLdm(own)), 0);
  const shapes = {};
  const add = (/** @type {string} */ module, /** @type {readonly number[]} */ [rows, columns]) => {
    const name = module.replaceAll(".", "_");
    shapes[`${name}.lora_down.weight`] = [4, columns];
    shapes[`${name}.lora_up.weight`] = [rows, 4];
    shapes[`${name}.alpha`] = [];
  };
  for (const [key, shape] of Object.entries(model)) {
    if (shape.length !== 2 || !key.endsWith(".weight")) continue;
    const module = key.slice(0, -".weight".length);
    if (module.includes(".transformer_blocks."))
      add(`lora_unet_${toDiffusers(module.slice(unetPrefix.length))}`, shape);
    else if (module.startsWith(`${L}encoder.`)) add(`lora_te_text_model_${module.slice(L.length)}`, shape);
  }
  return shapes;
}

const sd1 = checkpoint(SD1, textShapes(L, encoder("l")));
const sd2 = checkpoint(SD2, textShapes(H, encoder("h", 3)));
const sdxl = checkpoint(
  { ...SDXL, contextDim: 2 * HIDDEN, labelDim: HIDDEN + SIZES.sdxl },
  { ...textShapes(FIRST, encoder("l")), ...textShapes("conditioner.embedders.1.model.", encoder("g")) },
);
const refiner = checkpoint(
  { ...SDXL, depths: [0, 2, 0], channels: [32, 64, 64], contextDim: HIDDEN, labelDim: HIDDEN + SIZES.refiner },
  textShapes("conditioner.embedders.0.model.", encoder("g")),
);
const taesd = { channels: 16, latentChannels: 4, hasDecoder: true, hasEncoder: true };
const upscaler = /** @type {const} */ ({
  kind: "rrdb",
  channels: 16,
  growth: 8,
  blocks: 1,
  doublings: 2,
  unshuffle: 1,
  scale: 4,
});

/** @type {Record<string, { shapes: Shapes, v?: boolean }>} */
const FILES = {
  "checkpoints/tiny-sd1": { shapes: sd1 },
  "checkpoints/tiny-sd1-inpainting": { shapes: checkpoint({ ...SD1, inChannels: 9 }, textShapes(L, encoder("l"))) },
  "checkpoints/tiny-sd2": { shapes: sd2 },
  "checkpoints/tiny-sd2-v": { shapes: sd2, v: true },
  "checkpoints/tiny-sdxl": { shapes: sdxl },
  "checkpoints/tiny-sdxl-refiner": { shapes: refiner },
  "vae/tiny-vae": { shapes: vaeShapes("") },
  "vae/tiny-taesd": {
    shapes: {
      ...shapesOf("", (network) => buildTaesdEncoder(network, taesd)),
      ...shapesOf("", (network) => buildTaesdDecoder(network, taesd)),
    },
  },
  "loras/tiny-sd1-lora": { shapes: loraShapes(sd1) },
  "controlnet/tiny-sd1-control": {
    shapes: shapesOf("control_model.", (network) => buildControlNet(network, unet(SD1))),
  },
  "upscale_models/tiny-4x": { shapes: shapesOf("", (network) => buildUpscaler(network, upscaler)) },
  "embeddings/tiny-embedding": { shapes: { emb_params: [2, HIDDEN] } },
};

/** Norms near 1, small biases, and matrices whose outputs are as large as their inputs. */
function values(key, shape, seed, v) {
  const size = shape.reduce((product, side) => product * side, 1);
  if (shape.length === 0) return Float32Array.of(4);
  const noise = randn([size], { seed }).data;
  if (shape.length > 1) return noise.map((value) => value / Math.sqrt(size / shape[0]));
  if (!key.endsWith("bias")) return noise.map((value) => 1 + 0.1 * value);
  return noise.map((value) => value * (v && key === V_KEY ? 0.2 : 0.02));
}

function write(path, { shapes, v = false }, seed) {
  mkdirSync(dirname(path), { recursive: true });
  let end = 0;
  const header = {};
  for (const [key, shape] of Object.entries(shapes)) {
    const bytes = 2 * shape.reduce((product, side) => product * side, 1);
    header[key] = { dtype: "F16", shape, data_offsets: [end, end + bytes] };
    end += bytes;
  }
  const text = JSON.stringify(header);
  const padded = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const file = openSync(path, "w");
  writeSync(file, length);
  writeSync(file, padded);
  let index = 0;
  for (const [key, shape] of Object.entries(shapes))
    writeSync(file, new Uint8Array(toHalves(values(key, shape, 1000 * seed + index++, v)).buffer));
  closeSync(file);
}

const [folder, ...rest] = process.argv.slice(2);
if (folder === undefined || rest.length > 0) {
  console.error("Usage: make-tiny-models.mjs DIR");
  process.exit(2);
}
for (const [index, [name, file]] of Object.entries(FILES).entries())
  write(join(folder, `${name}.safetensors`), file, index);
