import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randn, Tensor } from "latentkit";
import { type RotationTables, rotationTables, timeEmbeddings } from "#src/host/checkpoint/networks/sinusoids.js";
import { buildQwen3, type Qwen3Config, qwen3Part } from "#src/host/checkpoint/text-encoder/qwen3.js";
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
  async "text encoder Qwen3"() {
    const { weights, config } = qwen3Part(await file("text_encoders/qwen_3_tiny"), "", "3");
    return { weights, build: (network) => buildQwen3(network, config), feeds: textFeeds(config) };
  },
};
