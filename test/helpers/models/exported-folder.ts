import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { embeddingFrequencies } from "#src/host/checkpoint/networks/sinusoids.js";
import { OnnxGraph, type PortType, type Sides, type Value } from "#src/host/checkpoint/onnx/graph.js";
import type { Part } from "#src/host/checkpoint/recognition/part.js";
import { buildTextEncoder } from "#src/host/checkpoint/text-encoder/build.js";
import { buildUnet, type UnetConfig } from "#src/host/checkpoint/unet/build.js";
import { buildVaeDecoder, buildVaeEncoder } from "#src/host/checkpoint/vae/build.js";
import { type Network, networkOf } from "#src/host/checkpoint/weights/network.js";
import type { StableDiffusion } from "./recognised.js";

/** Names and types of one exporter. */
export interface Flavour {
  readonly className: string;
  readonly ids: "int32" | "int64";
  readonly timestep: { readonly type: PortType; readonly sides: Sides };
  readonly latents: "float" | "float16";
  readonly encoder: "latent_parameters" | "latent_sample";
  readonly weights: string;
  readonly hasConfigs: boolean;
}

const OPTIMUM: Flavour = {
  className: "StableDiffusionPipeline",
  ids: "int64",
  timestep: { type: "float", sides: [] },
  latents: "float",
  encoder: "latent_parameters",
  weights: "model.onnx_data",
  hasConfigs: true,
};

/** Optimum of 2026, of 2023, the script of diffusers, and Optimum with half precision. */
export const FLAVOURS = {
  optimum: OPTIMUM,
  "old optimum": { ...OPTIMUM, className: "ORTStableDiffusionPipeline", timestep: { type: "int64", sides: ["steps"] } },
  script: {
    ...OPTIMUM,
    className: "OnnxStableDiffusionPipeline",
    ids: "int32",
    timestep: { type: "float", sides: ["batch"] },
    encoder: "latent_sample",
    weights: "weights.pb",
    hasConfigs: false,
  },
  halves: { ...OPTIMUM, latents: "float16", timestep: { type: "float16", sides: [] } },
} as const satisfies Record<string, Flavour>;

/** Numbers of TensorProto.DataType. */
const [FLOAT, INT64, FLOAT16] = [1, 7, 10].map((int) => ({ to: { int } }));

/** One input or output of an export in place of a builder's. */
type Rename = (graph: ExportedGraph, sides: Sides) => Value;

/** A graph whose ports have the names and types of an export. */
class ExportedGraph extends OnnxGraph {
  readonly #inputs: Readonly<Record<string, Rename>>;
  readonly #outputs: (name: string, value: Value, sides: Sides) => void;

  constructor(inputs: Readonly<Record<string, Rename>>, outputs: (name: string, value: Value, sides: Sides) => void) {
    super("export");
    this.#inputs = inputs;
    this.#outputs = outputs;
  }

  override input(name: string, type: PortType, sides: Sides): Value {
    const rename = this.#inputs[name];
    return rename === undefined ? super.input(name, type, sides) : rename(this, sides);
  }

  override output(value: Value, name: string, _: PortType, sides: Sides): void {
    this.#outputs(name, value, sides);
  }

  /** Declares an input as it is. */
  declare(name: string, type: PortType, sides: Sides): Value {
    return super.input(name, type, sides);
  }

  /** Declares an output as it is. */
  emit(value: Value, name: string, type: PortType, sides: Sides): void {
    super.output(value, name, type, sides);
  }
}

const renamed =
  (name: string, type: PortType): Rename =>
  (graph, sides) => {
    const value = graph.declare(name, type, sides);
    return type === "float" ? value : graph.node("Cast", [value], type === "float16" ? FLOAT : INT64);
  };

/** Writes a recognised checkpoint as a folder of diffusers; `file` holds its weights. */
export function writeExportedFolder(
  folder: string,
  { family, sampling, unet, textEncoders, vae }: StableDiffusion,
  flavour: Flavour = OPTIMUM,
): void {
  const isXl = family === "sdxl";
  const className = isXl ? flavour.className.replace("DiffusionPipeline", "DiffusionXLPipeline") : flavour.className;
  json(folder, "model_index.json", { _class_name: className, unet: ["diffusers", "OnnxRuntimeModel"] });
  json(folder, "scheduler/scheduler_config.json", {
    _class_name: "DDIMScheduler",
    beta_start: 0.00085,
    beta_end: 0.012,
    beta_schedule: "scaled_linear",
    num_train_timesteps: 1000,
    trained_betas: null,
    prediction_type: sampling.prediction === "v" ? "v_prediction" : "epsilon",
    rescale_betas_zero_snr: sampling.zeroTerminalSnr,
  });
  if (family === "sd2") json(folder, "tokenizer/special_tokens_map.json", { pad_token: "!" });
  writeUnet(folder, family, unet, flavour);
  for (const [index, encoder] of textEncoders.entries())
    writeTextEncoder(folder, index === 0 ? "text_encoder" : "text_encoder_2", family, encoder, flavour);
  writeVae(folder, isXl ? 0.13025 : 0.18215, vae!, flavour);
}

function writeUnet(folder: string, family: string, part: Part<UnetConfig>, flavour: Flavour): void {
  const { config } = part;
  const { type, sides } = flavour.timestep;
  const graph: ExportedGraph = new ExportedGraph(
    {
      x: renamed("sample", flavour.latents),
      timestep: (own) => {
        const value = own.declare("timestep", type, sides);
        return own.node("Cast", [own.node("Reshape", [value, own.ints([-1])])], FLOAT);
      },
      context: renamed("encoder_hidden_states", flavour.latents),
      y: (own) => labels(own, config.labelDim!),
    },
    (_, value, shape) => {
      const isHalf = flavour.latents === "float16";
      graph.emit(isHalf ? graph.node("Cast", [value], FLOAT16) : value, "out_sample", flavour.latents, shape);
    },
  );
  write(folder, "unet", graph, part, flavour, (network) => buildUnet(network, config));
  if (!flavour.hasConfigs) return;
  json(folder, "unet/config.json", {
    in_channels: config.inChannels,
    out_channels: config.outChannels,
    cross_attention_dim: config.contextDim,
    ...(family === "sdxl" ? { projection_class_embeddings_input_dim: config.labelDim } : {}),
  });
}

/** The label of SDXL from its pooled text and numbers. */
function labels(graph: ExportedGraph, width: number): Value {
  const [count, half] = [6, 128];
  const pooled = graph.declare("text_embeds", "float", ["batch", width - count * 2 * half]);
  const numbers = graph.node("Unsqueeze", [graph.declare("time_ids", "float", ["batch", count]), graph.ints([2])]);
  const angles = graph.node("Mul", [numbers, graph.floats(embeddingFrequencies(half), [1, 1, half])]);
  const waves = graph.node("Concat", [graph.node("Cos", [angles]), graph.node("Sin", [angles])], { axis: { int: 2 } });
  const flat = graph.node("Reshape", [waves, graph.ints([-1, count * 2 * half])]);
  return graph.node("Concat", [pooled, flat], { axis: { int: 1 } });
}

function writeTextEncoder(
  folder: string,
  component: string,
  family: string,
  part: StableDiffusion["textEncoders"][number],
  flavour: Flavour,
): void {
  const { config } = part;
  let tokens: Value | undefined;
  let names: Readonly<Record<string, string>> = {};
  const graph: ExportedGraph = new ExportedGraph(
    {
      tokens: (own, sides) => {
        tokens ??= renamed("input_ids", flavour.ids)(own, sides);
        return tokens;
      },
      embeddings: (own) => own.floats(new Float32Array(config.hidden), [1, config.hidden]),
    },
    (name, value, sides) => {
      if (names[name] !== undefined) graph.emit(value, names[name], "float", sides);
    },
  );
  const build = (network: Network): void => {
    const isXl = family === "sdxl";
    names = { cond: "last_hidden_state", pooled: config.projection === undefined ? "pooler_output" : "text_embeds" };
    buildTextEncoder(network, config, { layer: family === "sd2" ? -2 : -1, finalNorm: true });
    for (let layer = 0; isXl && layer <= config.layers; layer++) {
      names = { cond: `hidden_states.${layer}` };
      buildTextEncoder(network, config, { layer: layer - config.layers - 1, finalNorm: false });
    }
  };
  write(folder, component, graph, part, flavour, build);
  if (!flavour.hasConfigs) return;
  json(folder, `${component}/config.json`, {
    hidden_act: config.activation === "gelu" ? "gelu" : "quick_gelu",
    hidden_size: config.hidden,
    vocab_size: config.vocabulary,
  });
}

function writeVae(folder: string, scale: number, part: NonNullable<StableDiffusion["vae"]>, flavour: Flavour): void {
  const { config } = part;
  const decoder: ExportedGraph = new ExportedGraph({ z: renamed("latent_sample", "float") }, (_, value, sides) =>
    decoder.emit(value, "sample", "float", sides),
  );
  write(folder, "vae_decoder", decoder, part, flavour, (network) => buildVaeDecoder(network, config));
  let moments: Value | undefined;
  const isMoments = flavour.encoder === "latent_parameters";
  const encoder: ExportedGraph = new ExportedGraph(
    { image: renamed("sample", "float") },
    (_, value, [batch, , ...sides]) => {
      const channels = config.latentChannels * (isMoments ? 2 : 1);
      encoder.emit(isMoments ? moments! : value, flavour.encoder, "float", [batch!, channels, ...sides]);
    },
  );
  const trace = (key: string, value: Value): void => {
    if (key === "quant_conv") moments = value;
  };
  write(folder, "vae_encoder", encoder, part, flavour, (network) => buildVaeEncoder(network, config, { trace }));
  if (flavour.hasConfigs) json(folder, "vae_decoder/config.json", { scaling_factor: scale, latent_channels: 4 });
}

/** Writes a network with the checkpoint's file as its external data. */
function write(
  folder: string,
  component: string,
  graph: OnnxGraph,
  { weights }: Part<unknown>,
  flavour: Flavour,
  build: (network: Network) => void,
): void {
  mkdirSync(join(folder, component), { recursive: true });
  const file = join(folder, component, flavour.weights);
  copyFileSync(weights.values().next().value!.file, file);
  const moved = new Map([...weights].map(([key, weight]) => [key, { ...weight, file }]));
  build(networkOf(graph, moved));
  writeFileSync(join(folder, component, "model.onnx"), graph.encode({ overridable: false }).bytes);
}

/** Writes a JSON file of a folder. */
export function json(folder: string, name: string, values: unknown): void {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), JSON.stringify(values));
}
