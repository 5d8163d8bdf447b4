import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randn, Tensor } from "latentkit";
import { buildClipVision } from "#src/host/checkpoint/clip-vision/build.js";
import { clipVisionPart } from "#src/host/checkpoint/clip-vision/recognise.js";
import { buildProjection } from "#src/host/checkpoint/ip-adapter/build.js";
import { ipAdapterPart } from "#src/host/checkpoint/ip-adapter/recognise.js";
import type { UnetConfig } from "#src/host/checkpoint/unet/build.js";
import { buildControlNet, controlNetPart } from "#src/host/checkpoint/unet/control.js";
import { adapterAttention, PICTURE_INPUTS } from "#src/host/checkpoint/unet/image-adapters.js";
import { buildT2iAdapter, t2iAdapterPart } from "#src/host/checkpoint/unet/t2i-adapter.js";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import { adapterFile } from "../models/golden-adapters.js";
import type { TinyNetwork } from "./tiny-networks.js";

/** A golden file, unpacked until this process ends. */
async function file(name: string) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-golden-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return adapterFile(`${name}.safetensors`, folder);
}

const noise = (shape: readonly number[], seed: number): Tensor => randn(shape, { seed });

/** A UNet with one transformer, in block 1. */
const ONE_TRANSFORMER = {
  input: [
    { kind: "conv", channels: 32, depth: 0 },
    { kind: "res", channels: 32, depth: 1 },
  ],
  output: [
    { kind: "res", channels: 32, depth: 0, upsample: false },
    { kind: "res", channels: 32, depth: 0, upsample: false },
  ],
} as unknown as UnetConfig;

export const TINY_ADAPTERS: Readonly<Record<string, () => Promise<TinyNetwork>>> = {
  async "CLIP vision encoder"() {
    const { weights, config } = clipVisionPart(await file("clip_vision/CLIP-ViT-H-14-laion2B-s32B-b79K"));
    const feeds = { pixels: noise([1, 3, 224, 224], 1) };
    // all layers have the same operators, and a software GPU takes seconds for each
    return { weights, build: (network) => buildClipVision(network, { ...config, layers: 2 }), feeds };
  },
  async "projection of pictures"() {
    const { weights, config } = ipAdapterPart(await file("ipadapter/ip-adapter-plus_sd15")).projection;
    const feeds = { state: noise([1, 257, config.inputs], 1) };
    return { weights, build: (network) => buildProjection(network, config), feeds };
  },
  async "attention on pictures"() {
    const { keys, isSdxl } = ipAdapterPart(await file("ipadapter/ip-adapter-plus_sd15"));
    const layout = { network: 0, keys: keys.config, isSdxl, hasMiddle: false };
    return {
      weights: keys.weights,
      build: (network: Network) => {
        const { graph } = network;
        const query = graph.input("query", "float", ["B", "L", 32]);
        const further = adapterAttention([network], [layout], ONE_TRANSFORMER);
        graph.output(further("input_blocks.1.1", 0, query, { width: 32, heads: 8 })!, "out", "float", ["B", "L", 32]);
      },
      feeds: {
        query: noise([2, 24, 32], 1),
        [PICTURE_INPUTS.tokens(0)]: noise([2, 2, 16, keys.config.contextDim], 2),
        [PICTURE_INPUTS.factors(0)]: noise([16, 3], 3),
        [PICTURE_INPUTS.mask(0, 0)]: noise([1, 24, 1], 4),
      },
    };
  },
  async "T2I-Adapter"() {
    const { weights, config } = t2iAdapterPart(await file("controlnet/t2iadapter_canny_sd15"));
    const feeds = { cells: noise([1, 64, 9, 7], 1) };
    return { weights, build: (network) => buildT2iAdapter(network, config), feeds };
  },
  async "ControlNet for several kinds of pictures"() {
    const { weights, config } = controlNetPart(await file("controlnet/union_sdxl"));
    const { inChannels, contextDim, labelDim, union } = config;
    const feeds = {
      x: noise([1, inChannels, 8, 8], 1),
      timestep: Tensor.from([500], [1]),
      context: noise([1, 77, contextDim], 2),
      y: noise([1, labelDim!], 3),
      hint: noise([1, 3, 64, 64], 4),
      kinds: Tensor.from(
        Array.from({ length: union!.types }, (_, kind) => (kind === 3 ? 1 : 0)),
        [1, union!.types],
      ),
      strength: Tensor.from([0.8], [1]),
    };
    return { weights, build: (network) => buildControlNet(network, config), feeds };
  },
};
