import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randn, Tensor } from "latentkit";
import { FLUX_PLACES, fluxAxes } from "#src/host/checkpoint/flux/patches.js";
import { type RotationTables, rotationTables, timeEmbeddings } from "#src/host/checkpoint/networks/sinusoids.js";
import { buildQwenImage, type QwenImageConfig, qwenImageEmbeddings } from "#src/host/checkpoint/qwen-image/build.js";
import { buildQwenImageControl, qwenImageControlPart } from "#src/host/checkpoint/qwen-image/control.js";
import { qwenImagePositions } from "#src/host/checkpoint/qwen-image/model.js";
import { qwenImagePart } from "#src/host/checkpoint/qwen-image/recognise.js";
import {
  buildQwenVision,
  qwenVisionPart,
  seenPicture,
  visionFeeds,
} from "#src/host/checkpoint/text-encoder/qwen-vision.js";
import { buildQwen3, type Qwen3Config, qwen3Part } from "#src/host/checkpoint/text-encoder/qwen3.js";
import { buildVaeDecoder, buildVaeEncoder, type VaeConfig } from "#src/host/checkpoint/vae/build.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import { buildZImage, PADDING, type ZImageConfig } from "#src/host/checkpoint/z-image/build.js";
import { buildZImageControl, zImageControlPart } from "#src/host/checkpoint/z-image/control.js";
import { zImagePositions } from "#src/host/checkpoint/z-image/model.js";
import { zImagePart } from "#src/host/checkpoint/z-image/recognise.js";
import { flowWeights } from "../models/golden-flow.js";
import type { TinyNetwork } from "./tiny-networks.js";

const TOKENS = 12;
const [ROWS, COLUMNS] = [6, 4];
const THETAS = { image: 256, text: 1_000_000 };
const LOWEST = -3.4028234663852886e38;

/** A golden file of Z-Image, as recognition sees it. */
async function file(name: string) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-golden-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return { name, metadata: {}, weights: await flowWeights(name, folder) };
}

const tables = (name: string, { cos, sin }: RotationTables) => ({ [`${name}_cos`]: cos, [`${name}_sin`]: sin });

const noise = (shape: readonly number[], seed: number): Tensor => randn(shape, { seed });

function imageFeeds({ channels, captionWidth, headSize }: ZImageConfig) {
  const axes = [4, 6, 6].map((part) => (headSize / 16) * part);
  const { caption, image } = zImagePositions(TOKENS, [ROWS, COLUMNS], PADDING);
  return {
    x: noise([1, channels, 2 * ROWS, 2 * COLUMNS], 1),
    embedding: timeEmbeddings([300]),
    context: noise([1, TOKENS, captionWidth], 2),
    ...tables("caption", rotationTables(caption, axes, THETAS.image)),
    ...tables("image", rotationTables(image, axes, THETAS.image)),
  };
}

/** Feeds of a Qwen-Image transformer; the last two of its patches are a reference. */
function qwenFeeds({ inputs, contextWidth, headSize }: QwenImageConfig) {
  const cells = ROWS * COLUMNS;
  const positions = qwenImagePositions(TOKENS, [2 * ROWS, 2 * COLUMNS]);
  return {
    x: noise([1, cells, inputs], 1),
    time: qwenImageEmbeddings([0.7]),
    reference_time: qwenImageEmbeddings([0]),
    count: { int64: [cells - 2], shape: [1] },
    context: noise([1, TOKENS, contextWidth], 2),
    ...tables("joint", rotationTables(positions, fluxAxes(headSize), FLUX_PLACES.theta)),
  };
}

function textFeeds({ headSize }: Qwen3Config) {
  const mask = Tensor.zeros([1, 1, TOKENS, TOKENS]);
  for (let row = 0; row < TOKENS; row++) mask.data.fill(LOWEST, row * TOKENS + row + 1, (row + 1) * TOKENS);
  const positions = Array.from({ length: TOKENS }, (_, at) => [at]);
  return {
    // ids whose rows are not zero
    tokens: {
      int64: Array.from({ length: TOKENS }, (_, at) => [151644, 872, 198, 151645][at % 4]!),
      shape: [1, TOKENS],
    },
    mask,
    ...tables("text", rotationTables(positions, [headSize], THETAS.text)),
  };
}

export const TINY_TRANSFORMERS: Readonly<Record<string, () => Promise<TinyNetwork>>> = {
  async "Z-Image transformer"() {
    const { weights, config } = zImagePart(await file("diffusion_models/z_image_tiny"), "");
    return { weights, build: (network) => buildZImage(network, config), feeds: imageFeeds(config) };
  },
  async "control net of Z-Image"() {
    const { weights, config } = zImageControlPart(await file("model_patches/z_fun_controlnet_v2_tiny"));
    const { width, headSize, timeWidth, channels } = config;
    const cells = ROWS * COLUMNS;
    const axes = [4, 6, 6].map((part) => (headSize / 16) * part);
    const { image } = zImagePositions(0, [ROWS, COLUMNS], 1);
    return {
      weights,
      build: (network) => buildZImageControl(network, config),
      feeds: {
        control: noise([1, cells, 4 * channels], 3),
        strength: Tensor.from([0.8], [1]),
        time: noise([1, timeWidth], 4),
        x: noise([1, cells, width], 5),
        ...tables("image", rotationTables(image, axes, THETAS.image)),
      },
    };
  },
  async "Qwen-Image transformer"() {
    const { weights, config } = qwenImagePart(await file("diffusion_models/qwen_image_tiny"), "");
    const build = (network: Network): void => buildQwenImage(network, config, { hasReferenceTime: true });
    return { weights, build, feeds: qwenFeeds(config) };
  },
  async "control net of Qwen-Image"() {
    const { weights, config } = qwenImageControlPart(await file("model_patches/q_diffsynth_tiny"));
    const cells = ROWS * COLUMNS;
    return {
      weights,
      build: (network) => buildQwenImageControl(network, config),
      feeds: {
        control: noise([1, cells, 4 * config.channels], 3),
        strength: Tensor.from([0.8], [1]),
        x: noise([1, cells, config.width], 5),
      },
    };
  },
  async "text encoder Qwen2.5-VL"() {
    const { weights, config } = qwen3Part(await file("text_encoders/qwen_2.5_vl_tiny"), "", "2.5-vl");
    const order = Array.from({ length: TOKENS }, (_, at) => (at === 3 ? TOKENS : at));
    const pictures = noise([1, config.hidden], 6);
    const feeds = { ...textFeeds(config), pictures, order: { int64: order, shape: [TOKENS] } };
    return { weights, build: (network) => buildQwen3(network, config), feeds };
  },
  async "vision tower Qwen2.5-VL"() {
    const { weights, config } = qwenVisionPart(await file("text_encoders/qwen_2.5_vl_tiny"), "")!;
    const picture = seenPicture(noise([1, 140, 140, 3], 7));
    return { weights, build: (network) => buildQwenVision(network, config), feeds: visionFeeds(picture, config) };
  },
  async "VAE decoder of Wan"() {
    const { part } = recogniseVae(await file("vae/qwen_image_vae_tiny"));
    const config = part.config as VaeConfig;
    const feeds = { z: noise([1, config.latentChannels, 4, 6], 8) };
    return { weights: part.weights, build: (network) => buildVaeDecoder(network, config), feeds };
  },
  async "VAE encoder of Wan"() {
    const { part } = recogniseVae(await file("vae/qwen_image_vae_tiny"));
    const config = part.config as VaeConfig;
    const feeds = { image: noise([1, 3, 32, 48], 9) };
    return { weights: part.weights, build: (network) => buildVaeEncoder(network, config), feeds };
  },
  async "text encoder Qwen3"() {
    const { weights, config } = qwen3Part(await file("text_encoders/qwen_3_tiny"), "", "3");
    return { weights, build: (network) => buildQwen3(network, config), feeds: textFeeds(config) };
  },
};
