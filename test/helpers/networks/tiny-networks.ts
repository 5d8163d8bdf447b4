import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randn, Tensor } from "latentkit";
import { buildFlux } from "#src/host/checkpoint/flux/build.js";
import { changesOf } from "#src/host/checkpoint/lora/changes.js";
import { recogniseLora } from "#src/host/checkpoint/lora/recognise.js";
import { buildSd3 } from "#src/host/checkpoint/sd3/build.js";
import { sd3Part } from "#src/host/checkpoint/sd3/recognise.js";
import { buildTextEncoder } from "#src/host/checkpoint/text-encoder/build.js";
import { buildT5, t5Buckets, t5Part } from "#src/host/checkpoint/text-encoder/t5.js";
import { buildUnet, type UnetEncoderConfig } from "#src/host/checkpoint/unet/build.js";
import { buildControlNet, controlNetPart } from "#src/host/checkpoint/unet/control.js";
import { unetPlaces } from "#src/host/checkpoint/unet/lora.js";
import { buildUpscaler } from "#src/host/checkpoint/upscaler/build.js";
import { upscalerPart } from "#src/host/checkpoint/upscaler/recognise.js";
import { buildVaeDecoder, buildVaeEncoder } from "#src/host/checkpoint/vae/build.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import { buildTaesdDecoder, buildTaesdEncoder, taesdPart } from "#src/host/checkpoint/vae/taesd.js";
import type { Network, WeightChanges } from "#src/host/checkpoint/weights/network.js";
import type { WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { CHROMA, FLUX_DEV, FLUX2_DEV, fluxFeeds } from "../models/flux-feeds.js";
import { unpackModel } from "../models/golden.js";
import { fluxLayers, fluxWeights } from "../models/golden-flux.js";
import { recogniseStableDiffusion } from "../models/recognised.js";
import { sd3Feeds } from "../models/sd3-feeds.js";
import type { Feeds } from "../models/session.js";
import { tinyModels } from "../models/tiny-host.js";
import { weightFile } from "../models/weight-file.js";
import { TINY_ADAPTERS } from "./tiny-adapters.js";
import { TINY_TRANSFORMERS } from "./tiny-transformers.js";

/** A network of the tiny models, and inputs for one run. */
export interface TinyNetwork {
  readonly weights: WeightMap;
  readonly changes?: WeightChanges;
  readonly build: (network: Network) => void;
  readonly feeds: Feeds;
}

/** First and last token of a prompt. */
const [START, END] = [49406, 49407];
const POSITIONS = 77;
const IMAGES = { asImages: true };
/** Strength of the LoRA; at 1 the random one makes values that grow from layer to layer. */
const STRENGTH = 0.5;
const TAESD = { scaleFactor: 1 };

const open = (name: string) => weightFile(join(tinyModels(), `${name}.safetensors`));
const checkpoint = async (name: string) => recogniseStableDiffusion(await open(`checkpoints/${name}`), readValues);

/** A golden checkpoint, unpacked until this process ends. */
async function goldenCheckpoint(name: string) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-golden-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return recogniseStableDiffusion(await weightFile(unpackModel(`checkpoints/${name}`, folder)), readValues);
}

/** Weights of a golden model of Flux, unpacked until this process ends. */
function goldenFlux(name: string): Promise<WeightMap> {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-golden-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return fluxWeights(name, folder);
}

async function vaeOfFlux2() {
  const vae = recogniseVae({ name: "vae", metadata: {}, weights: await goldenFlux("vae/flux2_vae") });
  if (vae.kind === "vae") return vae.part;
  throw new Error("the VAE of Flux.2 was taken for a tiny one");
}

/** Values of order 1. */
const noise = (shape: readonly number[], seed: number): Tensor => randn(shape, { seed });

/** A picture [batch, side, side, 3], or as planes. */
function picture(shape: readonly number[]): Tensor {
  const { data } = noise(shape, 9);
  return Tensor.from(
    data.map((value) => Math.min(Math.abs(value), 1)),
    shape,
  );
}

/** Batch, height and width of a latent in cells. */
type Latents = readonly [batch: number, height: number, width: number];

const unetFeeds = ({ inChannels, contextDim, labelDim }: UnetEncoderConfig, [batch, ...sides]: Latents) => ({
  x: noise([batch, inChannels, ...sides], 1),
  timestep: Tensor.from([999, 20.5].slice(0, batch), [batch]),
  context: noise([batch, POSITIONS, contextDim], 2),
  ...(labelDim !== undefined && { y: noise([batch, labelDim], 3) }),
});

/** The UNet of a checkpoint, with a LoRA merged in. */
const unet = (name: string, latents: Latents, lora?: string) => async (): Promise<TinyNetwork> => {
  const { weights, config } = (await checkpoint(name)).unet;
  const changes =
    lora === undefined
      ? undefined
      : changesOf(
          await recogniseLora(await open(`loras/${lora}`), readValues),
          { places: unetPlaces, weights },
          STRENGTH,
        );
  return { weights, changes, build: (network) => buildUnet(network, config), feeds: unetFeeds(config, latents) };
};

/** The text encoder at a place of a checkpoint, as its family uses it. */
const textEncoder =
  (name: string, index = 0) =>
  async (): Promise<TinyNetwork> => {
    const { weights, config } = (await checkpoint(name)).textEncoders[index]!;
    const ids = Array.from({ length: 2 * POSITIONS }, (_, i) => {
      const place = i % POSITIONS;
      return place === 0 ? START : place < 9 ? 300 + i : END;
    });
    return {
      weights,
      build: (network) => buildTextEncoder(network, config, { layer: -1, finalNorm: true }),
      feeds: { tokens: { int64: ids, shape: [2, POSITIONS] }, embeddings: noise([1, config.hidden], 5) },
    };
  };

/**
 * Each network by its name, with the smallest inputs that do: a software GPU takes seconds for them. One cell in the lowest
 * level would not do, where norms of two numbers magnify the least difference.
 */
export const TINY_NETWORKS: Readonly<Record<string, () => Promise<TinyNetwork>>> = {
  "UNet of SD 1": unet("tiny-sd1", [1, 16, 8]),
  // its transformers see 128 cells
  "UNet of SD 2": unet("tiny-sd2", [1, 16, 8]),
  // of three levels, not four
  "UNet of SDXL": unet("tiny-sdxl", [2, 8, 8]),
  "UNet for inpainting": unet("tiny-sd1-inpainting", [1, 16, 8]),
  "UNet with a LoRA": unet("tiny-sd1", [1, 16, 8], "tiny-sd1-lora"),
  async "UNet with weights of 8 bits"() {
    const { weights, config } = (await goldenCheckpoint("sd1_fp8")).unet;
    return { weights, build: (network) => buildUnet(network, config), feeds: unetFeeds(config, [1, 16, 8]) };
  },
  "text encoder of SD 1": textEncoder("tiny-sd1"),
  "text encoder of SD 2": textEncoder("tiny-sd2"),
  "second text encoder of SDXL": textEncoder("tiny-sdxl", 1),
  async "VAE decoder"() {
    const { weights, config } = (await checkpoint("tiny-sd1")).vae!;
    return {
      weights,
      build: (network) => buildVaeDecoder(network, config, IMAGES),
      feeds: { z: noise([1, config.latentChannels, 4, 4], 4) },
    };
  },
  async "VAE encoder"() {
    const { weights, config } = (await checkpoint("tiny-sd1")).vae!;
    const feeds = { image: picture([1, 32, 32, 3]) };
    return { weights, build: (network) => buildVaeEncoder(network, config, IMAGES), feeds };
  },
  async "taesd decoder"() {
    const { weights, config } = taesdPart(await open("vae/tiny-taesd"))!;
    return {
      weights,
      build: (network) => buildTaesdDecoder(network, config, TAESD),
      feeds: { z: noise([1, config.latentChannels, 4, 4], 4) },
    };
  },
  async "taesd encoder"() {
    const { weights, config } = taesdPart(await open("vae/tiny-taesd"))!;
    const feeds = { image: picture([1, 32, 32, 3]) };
    return { weights, build: (network) => buildTaesdEncoder(network, config, TAESD), feeds };
  },
  async ControlNet() {
    const { weights, config } = controlNetPart(await open("controlnet/tiny-sd1-control"));
    return {
      weights,
      build: (network) => buildControlNet(network, config),
      feeds: { ...unetFeeds(config, [1, 16, 16]), hint: picture([1, 3, 128, 128]), strength: Tensor.from([0.8], [1]) },
    };
  },
  async upscaler() {
    const { weights, config } = upscalerPart(await open("upscale_models/tiny-4x"));
    const feeds = { image: picture([1, 16, 16, 3]) };
    return { weights, build: (network) => buildUpscaler(network, config, IMAGES), feeds };
  },
  async "Flux transformer"() {
    const { trace, tensor } = fluxLayers();
    return {
      weights: await goldenFlux("diffusion_models/flux_dev"),
      build: (network) => buildFlux(network, FLUX_DEV),
      feeds: fluxFeeds(trace, FLUX_DEV, tensor),
    };
  },
  async "Flux.2 transformer"() {
    const { klein, tensor } = fluxLayers("flux2");
    const config = { ...FLUX2_DEV, hasGuidance: false };
    return {
      weights: await goldenFlux("diffusion_models/flux2_klein"),
      build: (network) => buildFlux(network, config),
      feeds: fluxFeeds(klein[2], config, tensor),
    };
  },
  async "Chroma transformer"() {
    const { net, tensor } = fluxLayers("chroma");
    return {
      weights: await goldenFlux("diffusion_models/chroma"),
      build: (network) => buildFlux(network, CHROMA),
      feeds: fluxFeeds(net[0], CHROMA, tensor),
    };
  },
  async "SD 3 transformer"() {
    const { net, tensor } = fluxLayers("sd3");
    const file = { name: "sd3", metadata: {}, weights: await goldenFlux("checkpoints/sd3_part") };
    const { weights, config } = sd3Part(file, "model.diffusion_model.");
    return { weights, build: (network) => buildSd3(network, config), feeds: sd3Feeds(net[2], tensor) };
  },
  async "VAE decoder of Flux.2"() {
    const { weights, config } = await vaeOfFlux2();
    const build: TinyNetwork["build"] = (network) => buildVaeDecoder(network, config, IMAGES);
    return { weights, build, feeds: { z: noise([1, 128, 2, 3], 4) } };
  },
  async "VAE encoder of Flux.2"() {
    const { weights, config } = await vaeOfFlux2();
    const build: TinyNetwork["build"] = (network) => buildVaeEncoder(network, config, IMAGES);
    return { weights, build, feeds: { image: picture([1, 32, 48, 3]) } };
  },
  async "text encoder T5"() {
    const file = await goldenFlux("text_encoders/t5xxl_fp16");
    const { weights, config } = t5Part({ name: "t5", metadata: {}, weights: file }, "");
    const ids: number[] = fluxLayers().t5_trace.ids;
    const { length } = ids;
    return {
      weights,
      build: (network) => buildT5(network, config),
      feeds: {
        tokens: { int64: ids, shape: [1, length] },
        buckets: { int64: t5Buckets(length), shape: [length, length] },
      },
    };
  },
  ...TINY_TRANSFORMERS,
  ...TINY_ADAPTERS,
};
