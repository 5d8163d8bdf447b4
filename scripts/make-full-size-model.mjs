#!/usr/bin/env node
// Writes a model with the keys and sizes of a trained one and random weights, to measure time and memory with.
// Usage: make-full-size-model.mjs sd1|sdxl|z-image|qwen3|flux1|flux2-klein|t5xxl|flux-vae|qwen-image|qwen2.5-vl|wan-vae FILE [F16|F8_E4M3].
import assert from "node:assert/strict";
import { closeSync, openSync, writeSync } from "node:fs";
import { buildFlux } from "../dist/host/checkpoint/flux/build.js";
import { buildQwenImage } from "../dist/host/checkpoint/qwen-image/build.js";
import { renamed } from "../dist/host/checkpoint/recognition/part.js";
import { toHalves } from "../dist/host/checkpoint/runtime/onnx-session.js";
import { buildTextEncoder } from "../dist/host/checkpoint/text-encoder/build.js";
import { buildQwenVision } from "../dist/host/checkpoint/text-encoder/qwen-vision.js";
import { buildQwen3 } from "../dist/host/checkpoint/text-encoder/qwen3.js";
import { buildT5 } from "../dist/host/checkpoint/text-encoder/t5.js";
import { buildUnet } from "../dist/host/checkpoint/unet/build.js";
import { buildVaeDecoder, buildVaeEncoder } from "../dist/host/checkpoint/vae/build.js";
import { WAN_RENAMES } from "../dist/host/checkpoint/vae/wan.js";
import { listedNetwork } from "../dist/host/checkpoint/weights/network.js";
import { buildZImage } from "../dist/host/checkpoint/z-image/build.js";
import { createGenerator } from "../dist/index.js";

/** Values that repeat, a prime number: no two rows of a weight are equal. */
const VALUES = 1_048_573;
/** Bytes of a value of each type. */
const TYPES = { F16: 2, F8_E4M3: 1 };

/** @typedef {import("../dist/host/checkpoint/text-encoder/build.js").TextEncoderConfig} TextEncoderConfig */
/** @typedef {import("../dist/host/checkpoint/unet/build.js").UnetConfig} UnetConfig */
/** @typedef {ReturnType<typeof listedNetwork>} ListedNetwork */
/** @typedef {Record<string, (network: ListedNetwork) => void>} Parts Builders by the prefix of their keys. */

/**
 * Structure of a UNet of 320 channels.
 *
 * @param {readonly number[]} depths transformer blocks at each level
 * @param {readonly number[]} multiples channels of each level as multiples of 320
 * @param {Pick<UnetConfig, "contextDim" | "linearProjection" | "heads" | "labelDim">} text
 * @returns {UnetConfig}
 */
function unet(depths, multiples, text) {
  const modelChannels = 320;
  const levels = depths.map((depth, level) => ({ depth, channels: modelChannels * (multiples[level] ?? 1) }));
  const [first, last] = [levels[0], levels.at(-1)];
  assert.ok(first !== undefined && last !== undefined);
  /** @type {UnetConfig["input"][number][]} */
  const input = [{ kind: "conv", channels: modelChannels, depth: 0 }];
  for (const [index, level] of levels.entries()) {
    for (let block = 0; block < 2; block++) input.push({ kind: "res", ...level });
    if (index < levels.length - 1) input.push({ kind: "down", channels: level.channels, depth: 0 });
  }
  const output = levels.toReversed().flatMap((level) =>
    [0, 1, 2].map((block) => ({
      kind: /** @type {const} */ ("res"),
      ...level,
      upsample: block === 2 && level !== first,
    })),
  );
  /** @type {UnetConfig["middle"]} */
  const middle = { kind: "res", channels: last.channels, depth: Math.max(1, last.depth) };
  return { inChannels: 4, outChannels: 4, modelChannels, ...text, input, middle, output };
}

/**
 * @param {TextEncoderConfig["name"]} name
 * @param {TextEncoderConfig["layout"]} layout
 * @param {number} heads
 * @param {number} layers
 * @param {TextEncoderConfig["projection"]} [projection]
 * @returns {Parts[string]}
 */
function textEncoder(name, layout, heads, layers, projection) {
  const hidden = 64 * heads;
  const sizes = {
    hidden,
    layers,
    heads,
    mlp: 4 * hidden,
    missing: 0,
    vocabulary: 49408,
    positions: /** @type {const} */ (77),
  };
  const activation = name === "l" ? "quick-gelu" : "gelu";
  return (network) =>
    buildTextEncoder(network, { name, layout, ...sizes, activation, projection }, { layer: -1, finalNorm: true });
}

/**
 * @param {4 | 16} latentChannels
 * @param {import("../dist/host/checkpoint/vae/build.js").VaeConfig["family"]} [kind]
 * @returns {Parts[string]}
 */
function vae(latentChannels, kind = "sd") {
  const sizes = {
    family: kind,
    channels: kind === "wan" ? 96 : 128,
    multipliers: [1, 2, 4, 4],
    blocks: 2,
    encoderChannels: 128,
    latentChannels,
    normalised: false,
    quantised: latentChannels === 4 || kind === "wan",
  };
  const config = { ...sizes, attention: /** @type {const} */ (4), hasEncoder: true };
  return (network) => {
    buildVaeEncoder(network, config);
    buildVaeDecoder(network, config);
  };
}

/** @type {import("../dist/host/checkpoint/z-image/build.js").ZImageConfig} */
const Z_IMAGE = {
  channels: 16,
  width: 3840,
  heads: 30,
  headSize: 128,
  captionWidth: 2560,
  mlp: 10240,
  layout: "original",
  layers: 30,
  noiseRefiners: 2,
  contextRefiners: 2,
  timeWidth: 256,
  timeHidden: 1024,
};
/** @type {import("../dist/host/checkpoint/qwen-image/build.js").QwenImageConfig} */
const QWEN_IMAGE = {
  inputs: 64,
  width: 3072,
  heads: 24,
  headSize: 128,
  mlp: 12288,
  contextWidth: 3584,
  blocks: 60,
  hasReferenceTime: false,
};
/** @type {import("../dist/host/checkpoint/text-encoder/qwen3.js").Qwen3Config} */
const QWEN25_VL = {
  version: "2.5-vl",
  hidden: 3584,
  layers: 28,
  heads: 28,
  groups: 4,
  headSize: 128,
  mlp: 18944,
  vocabulary: 152064,
};
const QWEN_VISION = { width: 1280, heads: 16, headSize: 80, mlp: 3420, blocks: 32, hidden: 3584 };

/**
 * One layer more than is run, which is not written.
 *
 * @type {import("../dist/host/checkpoint/text-encoder/qwen3.js").Qwen3Config}
 */
const QWEN3 = {
  version: "3",
  hidden: 2560,
  layers: 36,
  heads: 32,
  groups: 8,
  headSize: 128,
  mlp: 9728,
  vocabulary: 151936,
};

/** @typedef {import("../dist/host/checkpoint/flux/config.js").FluxConfig} FluxConfig */
/** @type {FluxConfig} */
const FLUX1 = {
  kind: "flux",
  inputs: 64,
  outputs: 64,
  width: 3072,
  heads: 24,
  headSize: 128,
  mlp: 12288,
  norms: "scale",
  contextWidth: 4096,
  pooledWidth: 768,
  doubleBlocks: 19,
  singleBlocks: 38,
  hasGuidance: true,
};
/** @type {FluxConfig} */
const FLUX2_KLEIN_4B = {
  ...FLUX1,
  kind: "flux2",
  inputs: 128,
  outputs: 128,
  mlp: 9216,
  contextWidth: 7680,
  pooledWidth: 0,
  doubleBlocks: 5,
  singleBlocks: 20,
  hasGuidance: false,
};
const T5_XXL = { hidden: 4096, layers: 24, heads: 64, headSize: 64, mlp: 10240, vocabulary: 32128 };

const SD1 = unet([1, 1, 1, 0], [1, 2, 4, 4], { contextDim: 768, linearProjection: false, heads: { count: 8 } });
const SDXL = unet([0, 2, 10], [1, 2, 4], {
  contextDim: 2048,
  linearProjection: true,
  heads: { size: 64 },
  labelDim: 2816,
});

/** @type {Record<string, Parts>} */
const FAMILIES = {
  sd1: {
    "cond_stage_model.transformer.text_model.": textEncoder("l", "hf", 12, 12),
    "model.diffusion_model.": (network) => buildUnet(network, SD1),
    "first_stage_model.": vae(4),
  },
  sdxl: {
    "conditioner.embedders.0.transformer.text_model.": textEncoder("l", "hf", 12, 12),
    "conditioner.embedders.1.model.": textEncoder("g", "openclip", 20, 32, {
      key: "text_projection",
      transposed: false,
      size: 1280,
    }),
    "model.diffusion_model.": (network) => buildUnet(network, SDXL),
    "first_stage_model.": vae(4),
  },
  "z-image": { "": (network) => buildZImage(network, Z_IMAGE) },
  qwen3: { "": (network) => buildQwen3(network, QWEN3) },
  flux1: { "": (network) => buildFlux(network, FLUX1) },
  "flux2-klein": { "": (network) => buildFlux(network, FLUX2_KLEIN_4B) },
  t5xxl: { "": (network) => buildT5(network, T5_XXL) },
  "flux-vae": { "": vae(16) },
  "qwen-image": { "": (network) => buildQwenImage(network, QWEN_IMAGE) },
  "qwen2.5-vl": {
    "": (network) => {
      buildQwen3(network, QWEN25_VL);
      buildQwenVision(network, QWEN_VISION);
    },
  },
  "wan-vae": { "": vae(16, "wan") },
};

const [family = "", file, type = "F16"] = process.argv.slice(2);
const parts = FAMILIES[family];
if (parts === undefined || file === undefined || !Object.hasOwn(TYPES, type)) {
  const [families, types] = [FAMILIES, TYPES].map((each) => Object.keys(each).join("|"));
  console.error(`Usage: make-full-size-model.mjs ${families} FILE [${types}]`);
  process.exit(2);
}
const valueBytes = TYPES[/** @type {keyof typeof TYPES} */ (type)];

/** Name of a builder's key in a file of the family. */
const { nameInFile } = renamed(new Map(), family === "wan-vae" ? WAN_RENAMES : [], "");
/** @type {[key: string, shape: readonly number[]][]} */
const weights = [];
for (const [prefix, build] of Object.entries(parts)) {
  const network = listedNetwork();
  build(network);
  for (const [key, shape] of network.listed) weights.push([prefix + nameInFile(key), shape]);
}

/** @param {readonly number[]} sides */
const product = (sides) => sides.reduce((size, side) => size * side, 1);

/** Normal numbers. */
const noise = createGenerator({ seed: 1 }).randn([VALUES]).data;
/** @type {Map<string, Uint8Array>} */
const blocks = new Map();

/**
 * Bytes of normal numbers that a weight repeats: a network of such weights keeps values near 1.
 *
 * @param {string} key
 * @param {readonly number[]} shape
 */
function blockFor(key, shape) {
  const isFactor = key.endsWith(".gamma") || (shape.length === 1 && /\.(?:weight|scale)$/.test(key));
  const mean = isFactor ? 1 : 0;
  const deviation = shape.length === 1 || isFactor ? 0.05 : 1 / Math.sqrt(product(shape.slice(1)));
  const name = `${mean} ${deviation}`;
  const known = blocks.get(name);
  if (known !== undefined) return known;
  const values = noise.map((value) => mean + deviation * value);
  const halves = type === "F16" ? toHalves(values) : Uint8Array.from(values, toF8);
  const block = new Uint8Array(halves.buffer, halves.byteOffset, halves.byteLength);
  blocks.set(name, block);
  return block;
}

/**
 * The nearest number of 8 bits: sign, 4 of exponent (bias 7), 3 of mantissa.
 *
 * @param {number} value
 */
function toF8(value) {
  const size = Math.min(Math.abs(value), 448);
  const exponent = Math.max(-6, Math.floor(Math.log2(size)));
  const steps = Math.round(size / 2 ** (exponent - 3));
  return (value < 0 ? 0x80 : 0) + (exponent + 6) * 8 + steps;
}

let end = 0;
/** @type {Record<string, unknown>} */
const header = {};
for (const [key, shape] of weights) {
  const from = end;
  end += valueBytes * product(shape);
  header[key] = { dtype: type, shape, data_offsets: [from, end] };
}
const text = Buffer.from(JSON.stringify(header));
const start = Buffer.alloc(8);
start.writeBigUInt64LE(BigInt(text.length));
const handle = openSync(file, "wx");
writeSync(handle, start);
writeSync(handle, text);
let phase = 0;
for (const [key, shape] of weights) {
  const block = blockFor(key, shape);
  for (let rest = valueBytes * product(shape); rest > 0; ) {
    const written = writeSync(handle, block.subarray(phase, phase + rest));
    rest -= written;
    phase = (phase + written) % block.length;
  }
}
closeSync(handle);
console.log(`${file}: ${weights.length} weights, ${product([end]) / valueBytes} parameters.`);
