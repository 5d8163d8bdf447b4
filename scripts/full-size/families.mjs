// Keys and sizes of trained models.
import assert from "node:assert/strict";
import { buildFlux } from "../../dist/host/checkpoint/flux/build.js";
import { buildQwenImage } from "../../dist/host/checkpoint/qwen-image/build.js";
import { renamed } from "../../dist/host/checkpoint/recognition/part.js";
import { buildSd3, POSITIONS } from "../../dist/host/checkpoint/sd3/build.js";
import { buildTextEncoder } from "../../dist/host/checkpoint/text-encoder/build.js";
import { buildQwenVision } from "../../dist/host/checkpoint/text-encoder/qwen-vision.js";
import { buildQwen3 } from "../../dist/host/checkpoint/text-encoder/qwen3.js";
import { buildT5 } from "../../dist/host/checkpoint/text-encoder/t5.js";
import { buildUnet } from "../../dist/host/checkpoint/unet/build.js";
import { buildVaeDecoder, buildVaeEncoder } from "../../dist/host/checkpoint/vae/build.js";
import { WAN_RENAMES } from "../../dist/host/checkpoint/vae/wan.js";
import { listedNetwork } from "../../dist/host/checkpoint/weights/network.js";
import { buildZImage } from "../../dist/host/checkpoint/z-image/build.js";

/** @typedef {import("../../dist/host/checkpoint/text-encoder/build.js").TextEncoderConfig} TextEncoderConfig */
/** @typedef {import("../../dist/host/checkpoint/unet/build.js").UnetConfig} UnetConfig */
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
 * @param {4 | 16 | 32} latentChannels
 * @param {import("../../dist/host/checkpoint/vae/build.js").VaeConfig["family"]} [kind]
 * @returns {Parts[string]}
 */
function vae(latentChannels, kind = "sd") {
  const channels = kind === "wan" ? 96 : 128;
  const config = {
    family: kind,
    channels,
    multipliers: [1, 2, 4, 4],
    blocks: 2,
    encoderChannels: channels,
    latentChannels,
    normalised: latentChannels === 32,
    quantised: latentChannels !== 16 || kind === "wan",
    attention: /** @type {const} */ (4),
    hasEncoder: true,
  };
  return (network) => {
    buildVaeEncoder(network, config);
    buildVaeDecoder(network, config);
  };
}

/** @type {import("../../dist/host/checkpoint/z-image/build.js").ZImageConfig} */
const Z_IMAGE = {
  channels: 16,
  width: 3840,
  heads: 30,
  headSize: 128,
  captionWidth: 2560,
  mlp: 10240,
  layers: 30,
  noiseRefiners: 2,
  contextRefiners: 2,
  timeWidth: 256,
  timeHidden: 1024,
};
/** @type {import("../../dist/host/checkpoint/qwen-image/build.js").QwenImageConfig} */
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
/** @type {import("../../dist/host/checkpoint/text-encoder/qwen3.js").Qwen3Config} */
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
 * @type {import("../../dist/host/checkpoint/text-encoder/qwen3.js").Qwen3Config}
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

/** @typedef {import("../../dist/host/checkpoint/flux/config.js").FluxConfig} FluxConfig */
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
/** @type {import("../../dist/host/checkpoint/sd3/build.js").Sd3Config} */
const SD35_MEDIUM = {
  channels: 16,
  width: 1536,
  heads: 24,
  mlp: 6144,
  contextWidth: 4096,
  pooledWidth: 2048,
  side: 384,
  blocks: 24,
  selfAttending: 13,
  hasHeadNorms: true,
};
/**
 * Not of a trained model: for programs that try themselves.
 *
 * @type {FluxConfig}
 */
const FLUX2_TINY = {
  ...FLUX2_KLEIN_4B,
  width: 256,
  heads: 2,
  mlp: 768,
  contextWidth: 192,
  doubleBlocks: 1,
  singleBlocks: 2,
};
const T5_XXL = { hidden: 4096, layers: 24, heads: 64, headSize: 64, mlp: 10240, vocabulary: 32128 };

const SD1 = unet([1, 1, 1, 0], [1, 2, 4, 4], { contextDim: 768, linearProjection: false, heads: { count: 8 } });
const SDXL = unet([0, 2, 10], [1, 2, 4], {
  contextDim: 2048,
  linearProjection: true,
  heads: { size: 64 },
  labelDim: 2816,
});

/**
 * Networks of each model.
 *
 * @type {Record<string, Parts>}
 */
export const FAMILIES = {
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
  "flux2-tiny": { "": (network) => buildFlux(network, FLUX2_TINY) },
  "sd3.5-medium": { "": (network) => buildSd3(network, SD35_MEDIUM) },
  "clip-l": { "text_model.": textEncoder("l", "hf", 12, 12) },
  "clip-g": { "": textEncoder("g", "hf", 20, 32, { key: "text_projection.weight", transposed: true, size: 1280 }) },
  t5xxl: { "": (network) => buildT5(network, T5_XXL) },
  "flux-vae": { "": vae(16) },
  "flux2-vae": { "": vae(32) },
  "qwen-image": { "": (network) => buildQwenImage(network, QWEN_IMAGE) },
  "qwen2.5-vl": {
    "": (network) => {
      buildQwen3(network, QWEN25_VL);
      buildQwenVision(network, QWEN_VISION);
    },
  },
  "wan-vae": { "": vae(16, "wan") },
};

/** Names of files of Wan's VAE for the builder's keys. */
const { nameInFile } = renamed(new Map(), WAN_RENAMES, "");

/**
 * Keys and shapes of all weights of a model, as its file has them.
 *
 * @param {string} family
 * @returns {[key: string, shape: readonly number[]][]}
 */
export function weightsOf(family) {
  return Object.entries(FAMILIES[family] ?? {}).flatMap(([prefix, build]) => {
    const network = listedNetwork();
    build(network);
    return [...network.listed].map(([key, shape]) => {
      const name = family === "wan-vae" ? nameInFile(key) : key;
      return /** @type {[string, readonly number[]]} */ ([prefix + name, key === POSITIONS ? [1, ...shape] : shape]);
    });
  });
}
