import { basename } from "node:path";
import { randn } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { buildClipVision } from "#src/host/checkpoint/clip-vision/build.js";
import { clipVisionPart } from "#src/host/checkpoint/clip-vision/recognise.js";
import { recogniseCheckpoint, recogniseModelPatch } from "#src/host/checkpoint/families/recognise.js";
import { buildFlux } from "#src/host/checkpoint/flux/build.js";
import { buildProjection } from "#src/host/checkpoint/ip-adapter/build.js";
import { ipAdapterPart } from "#src/host/checkpoint/ip-adapter/recognise.js";
import { changesOf } from "#src/host/checkpoint/lora/changes.js";
import { readLora } from "#src/host/checkpoint/lora/recognise.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { buildQwenImage } from "#src/host/checkpoint/qwen-image/build.js";
import { buildQwenImageControl } from "#src/host/checkpoint/qwen-image/control.js";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { RuntimeProcess } from "#src/host/checkpoint/runtime/process.js";
import { buildSd3 } from "#src/host/checkpoint/sd3/build.js";
import { sessionOptions } from "#src/host/checkpoint/session/options.js";
import { buildTextEncoder } from "#src/host/checkpoint/text-encoder/build.js";
import { readEmbedding } from "#src/host/checkpoint/text-encoder/embeddings.js";
import { buildQwenVision } from "#src/host/checkpoint/text-encoder/qwen-vision.js";
import { buildQwen3 } from "#src/host/checkpoint/text-encoder/qwen3.js";
import { recogniseTextEncoders } from "#src/host/checkpoint/text-encoder/recognise.js";
import { buildT5 } from "#src/host/checkpoint/text-encoder/t5.js";
import { buildUnet } from "#src/host/checkpoint/unet/build.js";
import { buildControlNet } from "#src/host/checkpoint/unet/control.js";
import { recogniseControl } from "#src/host/checkpoint/unet/controls.js";
import { unetPlaces } from "#src/host/checkpoint/unet/lora.js";
import { buildT2iAdapter } from "#src/host/checkpoint/unet/t2i-adapter.js";
import { buildUpscaler } from "#src/host/checkpoint/upscaler/build.js";
import { upscalerPart } from "#src/host/checkpoint/upscaler/recognise.js";
import { buildVaeDecoder, buildVaeEncoder } from "#src/host/checkpoint/vae/build.js";
import { recogniseVae } from "#src/host/checkpoint/vae/recognise.js";
import { buildTaesdDecoder } from "#src/host/checkpoint/vae/taesd.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { PackedWeights } from "#src/host/checkpoint/weights/packed/packed-weights.js";
import { withUnpacked } from "#src/host/checkpoint/weights/packed/unpack.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { buildZImage } from "#src/host/checkpoint/z-image/build.js";
import { buildZImageControl } from "#src/host/checkpoint/z-image/control.js";

/**
 * A network that a file was recognised to hold: its graph, and its kind if it can be called. @typedef {object} Built
 * @property {string} name
 * @property {import("#src/host/checkpoint/onnx/graph.js").EncodedGraph} graph
 * @property {import("#src/host/checkpoint/weights/packed/packed-weights.js").UnpackPlan | undefined} unpack
 * @property {string} [kind]
 */

const buildEncoder = (network, config) => buildTextEncoder(network, config, { layer: -2, finalNorm: true });
/** Builders by the kinds of networks, and of text encoders. */
const NETWORKS = {
  UNet: buildUnet,
  "Z-Image transformer": buildZImage,
  "Qwen-Image transformer": buildQwenImage,
  "Flux transformer": buildFlux,
  "Flux.2 transformer": buildFlux,
  "Chroma transformer": buildFlux,
  "SD 3 transformer": buildSd3,
};
const TEXT_ENCODERS = { clip: buildEncoder, qwen3: buildQwen3, "qwen2.5-vl": buildQwen3, t5: buildT5 };
const MODEL_PATCHES = { "z-image": buildZImageControl, "qwen-image": buildQwenImageControl };

const vaeGraphs = (part) => [
  { name: "VAE decoder", part, build: buildVaeDecoder },
  ...(part.config.hasEncoder ? [{ name: "VAE encoder", part, build: buildVaeEncoder }] : []),
];
const textGraph = ({ kind, part }) => ({ name: `text encoder (${kind})`, part, build: TEXT_ENCODERS[kind], kind });

/** Parts of a file and their builders, by what it is loaded as; `base` is a sound UNet that LoRAs change. */
const ROLES = {
  checkpoint: async (file) => {
    const { network, vae, textEncoders } = await recogniseCheckpoint(file, readValues);
    const { what, part } = network;
    return [
      { name: what, part, build: NETWORKS[what], kind: what },
      ...(vae === undefined ? [] : vaeGraphs(vae)),
      // those of a file of their own are called
      ...textEncoders.map((encoder) => ({ ...textGraph(encoder), kind: undefined })),
    ];
  },
  "text encoder": async (file) =>
    recogniseTextEncoders(file).flatMap((encoder) => {
      const tower = encoder.kind === "qwen2.5-vl" ? encoder.tower : undefined;
      const seen = tower === undefined ? [] : [{ name: "vision tower", part: tower, build: buildQwenVision }];
      return [textGraph(encoder), ...seen];
    }),
  "model patch": async (file) => {
    const { family, part } = recogniseModelPatch(file);
    return [{ name: "model patch", part, build: MODEL_PATCHES[family] }];
  },
  VAE: async (file) => {
    const { kind, part } = recogniseVae(file);
    return kind === "vae" ? vaeGraphs(part) : [{ name: "TAESD", part, build: buildTaesdDecoder }];
  },
  ControlNet: async (file) => {
    const { kind, part } = recogniseControl(file);
    // a Control-LoRA becomes a network with its UNet
    if (kind === "lora") return [];
    return [{ name: kind, part, build: kind === "net" ? buildControlNet : buildT2iAdapter }];
  },
  "CLIP vision": async (file) => [{ name: "CLIP vision", part: clipVisionPart(file), build: buildClipVision }],
  IPAdapter: async (file) => [{ name: "IPAdapter", part: ipAdapterPart(file).projection, build: buildProjection }],
  upscaler: async (file) => [{ name: "upscale model", part: upscalerPart(file), build: buildUpscaler }],
  LoRA: async (file, base) => {
    const lora = await readLora(file, readValues);
    const changes = changesOf(lora, { places: unetPlaces, weights: base.weights }, 0.5);
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
    const graph = new OnnxGraph("damaged", undefined, true);
    const packed = new PackedWeights(path, unpacked);
    build(networkOf(graph, weights, { changes, packed }), config);
    return { name, kind, graph: graph.encode({ overridable: true }), unpack: packed.plan };
  });
}

/** The UNet of a checkpoint; undefined of another family's. @param {string} path */
export async function unetOf(path) {
  const { network } = await recogniseCheckpoint(await open(path), readValues);
  return network.what === "UNet" ? network.part : undefined;
}

/** Calls of a host before it begins anew: sessions of files that are gone stay loaded. */
const CALLS_OF_HOST = 50;
const PROMPT = "a (red:1.2) cat";

/** Makes sessions of graphs. */
export class Sessions {
  #runtime;
  #session = 0;

  /** Why a graph becomes no session; undefined if it does. @param {import("./roles.mjs").Built} built */
  async flawOf({ graph: { bytes, folder }, unpack }) {
    this.#runtime = this.#runtime?.isAlive ? this.#runtime : new RuntimeProcess();
    const runtime = this.#runtime;
    const session = ++this.#session;
    try {
      await runtime.ready;
      const task = "A session";
      const settings = sessionOptions({ provider: "cpu", threads: 1 }, folder);
      await withUnpacked(unpack, async () => {
        const sent = await runtime.sendBytes(bytes, task);
        await runtime.create({ session, model: sent, options: settings }, task);
      });
      await runtime.request({ type: "release", session }, task);
      return undefined;
    } catch (error) {
      return error.message;
    }
  }

  close() {
    this.#runtime?.kill();
  }
}

/**
 * Calls networks of a models folder as nodes do. Its files of transformers and of text encoders lie in one place; CLIP-L is
 * there too, which T5 takes beside it.
 */
export class Calls {
  #host;
  #calls = 0;

  /** @param {string} models @param {string} clipL name of its file */
  constructor(models, clipL) {
    this.#host = createCheckpointHost({ models, threads: 1 });
    this.clipL = clipL;
  }

  /** Why a network that was recognised cannot be called; undefined if it can. @param {string} path @param {string} kind */
  async flawOf(path, kind) {
    if (++this.#calls % CALLS_OF_HOST === 0) await this.#host.close();
    try {
      await this.#call(basename(path), kind);
      return undefined;
    } catch (error) {
      return error.stack ?? String(error);
    }
  }

  async #call(name, kind) {
    const load = (file, type) => this.#host.loadFile("text_encoders", file, undefined, { type });
    switch (kind) {
      case "Z-Image transformer":
      case "Qwen-Image transformer":
      case "Flux transformer":
      case "Flux.2 transformer":
      case "Chroma transformer":
      case "SD 3 transformer": {
        const model = /** @type {any} */ (await this.#host.loadFile("diffusion_models", name));
        const { outChannels, contextDim } = model.source.network;
        const context = randn([1, 3, contextDim], { seed: 1 });
        return model.predict(randn([1, outChannels, 4, 4], { seed: 2 }), 0.5, [[context, {}]]);
      }
      case "qwen3":
        return (await load(name, "lumina2")).encodeText(PROMPT);
      case "qwen2.5-vl":
        return (await load(name, "qwen_image")).encodeText(PROMPT);
      case "t5": {
        const clip = (await load(name, "flux")).joinedWith([await load(this.clipL, "flux")]);
        return clip.encodeTexts({ clip_l: PROMPT, t5xxl: PROMPT });
      }
    }
  }

  close() {
    return this.#host.close();
  }
}

/** Kinds of networks that are called. */
export const CALLED = [...Object.keys(NETWORKS).filter((name) => name !== "UNet"), "qwen3", "qwen2.5-vl", "t5"];
