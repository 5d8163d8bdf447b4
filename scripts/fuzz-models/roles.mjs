import { basename } from "node:path";
import { buildControlNet } from "#src/host/checkpoint/networks/controlnet.js";
import { buildFlux } from "#src/host/checkpoint/networks/flux/transformer.js";
import { buildQwen3 } from "#src/host/checkpoint/networks/qwen3.js";
import { buildT5 } from "#src/host/checkpoint/networks/t5.js";
import { buildTaesdDecoder } from "#src/host/checkpoint/networks/taesd.js";
import { buildTextEncoder } from "#src/host/checkpoint/networks/text-encoder.js";
import { buildUnet } from "#src/host/checkpoint/networks/unet.js";
import { buildUpscaler } from "#src/host/checkpoint/networks/upscaler.js";
import { buildVaeDecoder, buildVaeEncoder } from "#src/host/checkpoint/networks/vae.js";
import { buildZImage } from "#src/host/checkpoint/networks/z-image.js";
import { buildZImageControl } from "#src/host/checkpoint/networks/z-image-control.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { controlNetPart } from "#src/host/checkpoint/recognition/controlnet.js";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { recogniseCheckpoint } from "#src/host/checkpoint/recognition/recognise.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/recognition/text-encoder.js";
import { zImageControlPart } from "#src/host/checkpoint/recognition/transformers/z-image-control.js";
import { upscalerPart } from "#src/host/checkpoint/recognition/upscaler.js";
import { recogniseVae } from "#src/host/checkpoint/recognition/vae.js";
import { readEmbedding } from "#src/host/checkpoint/tokenizer/embedding-file.js";
import { changesOf } from "#src/host/checkpoint/weights/lora/changes.js";
import { readLora } from "#src/host/checkpoint/weights/lora/lora-file.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { PackedWeights } from "#src/host/checkpoint/weights/packed/packed-weights.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";

/**
 * A network that a file was recognised to hold: its graph, and its kind where it can be called. @typedef {object} Built
 * @property {string} name
 * @property {import("#src/host/checkpoint/onnx/graph.js").EncodedGraph} graph
 * @property {import("#src/host/checkpoint/weights/packed/packed-weights.js").UnpackPlan | undefined} unpack
 * @property {string} [kind]
 */

const buildEncoder = (network, config) => buildTextEncoder(network, config, { layer: -2, finalNorm: true });
/** Builders by the kinds of networks, and of text encoders. */
const NETWORKS = { unet: buildUnet, "z-image": buildZImage, flux: buildFlux };
const TEXT_ENCODERS = { clip: buildEncoder, qwen3: buildQwen3, t5: buildT5 };

const vaeGraphs = (part) => [
  { name: "VAE decoder", part, build: buildVaeDecoder },
  ...(part.config.hasEncoder ? [{ name: "VAE encoder", part, build: buildVaeEncoder }] : []),
];
const textGraph = ({ kind, part }) => ({ name: `text encoder (${kind})`, part, build: TEXT_ENCODERS[kind], kind });

/** Parts of a file and their builders, by what it is loaded as; `base` is a sound UNet that LoRAs change. */
const ROLES = {
  checkpoint: async (file) => {
    const { network, vae, textEncoders } = await recogniseCheckpoint(file, readValues);
    const { kind, part } = network;
    return [
      { name: `network (${kind})`, part, build: NETWORKS[kind], kind },
      ...(vae === undefined ? [] : vaeGraphs(vae)),
      // those of a file of their own are called
      ...textEncoders.map((encoder) => ({ ...textGraph(encoder), kind: undefined })),
    ];
  },
  "text encoder": async (file) => recogniseTextEncoders(file).map(textGraph),
  "model patch": async (file) => [{ name: "model patch", part: zImageControlPart(file), build: buildZImageControl }],
  VAE: async (file) => {
    const { kind, part } = recogniseVae(file);
    return kind === "vae" ? vaeGraphs(part) : [{ name: "TAESD", part, build: buildTaesdDecoder }];
  },
  ControlNet: async (file) => [{ name: "ControlNet", part: controlNetPart(file), build: buildControlNet }],
  upscaler: async (file) => [{ name: "upscale model", part: upscalerPart(file), build: buildUpscaler }],
  LoRA: async (file, base) => {
    const lora = await readLora(file, readValues);
    const changes = changesOf(lora, { kind: "unet", weights: base.weights }, 0.5);
    return [{ name: "UNet with LoRA", part: base, build: buildUnet, changes }];
  },
  embedding: async ({ path }) => {
    readEmbedding({ kind: "embeddings", name: basename(path), path }, { name: "l", width: 32 });
    return [];
  },
};

export const ROLE_NAMES = Object.keys(ROLES);

const open = (path) => openModelFile({ name: basename(path), path });

/**
 * Reads a file anew, as the loader of that role does, and builds its networks. Throws what the loader throws.
 *
 * @param {string} role
 * @param {string} path
 * @param {any} base
 * @param {string} unpacked folder of files with unpacked weights
 * @returns {Promise<Built[]>}
 */
export async function builtAs(role, path, base, unpacked) {
  const parts = await ROLES[role](await open(path), base);
  return parts.map(({ name, part: { config, weights }, build, changes, kind }) => {
    const graph = new OnnxGraph("damaged");
    const packed = new PackedWeights(path, unpacked);
    build(networkOf(graph, weights, { changes, packed }), config);
    return { name, kind, graph: graph.encode({ overridable: true }), unpack: packed.plan };
  });
}

/** The UNet of a checkpoint; undefined of another family's. @param {string} path */
export async function unetOf(path) {
  const { network } = await recogniseCheckpoint(await open(path), readValues);
  return network.kind === "unet" ? network.part : undefined;
}
