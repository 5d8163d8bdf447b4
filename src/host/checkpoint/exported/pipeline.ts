import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe } from "../../../base/errors.js";
import { isObject } from "../../../base/options.js";
import type { Checkpoint, Clip, Vae } from "../../types.js";
import { CheckpointClip, ownLayer } from "../clip.js";
import { MODEL_INDEX } from "../files/listing.js";
import type { ModelFile } from "../files/model-folders.js";
import { CheckpointModel } from "../model.js";
import type { TextEncoderConfig } from "../networks/text-encoder.js";
import type { StableDiffusionFamily } from "../recognition/recognised.js";
import { unsupported } from "../recognition/refusal.js";
import type { Runtime } from "../runtime/runtime.js";
import type { EmbeddingRows } from "../tokenizer/embedding-rows.js";
import { CheckpointVae } from "../vae.js";
import { Config } from "./config.js";
import { OnnxModel } from "./onnx-model.js";
import { scheduleOf } from "./schedule.js";
import { ExportedTextEncoder } from "./text-encoder.js";
import { ExportedUnet } from "./unet.js";
import { ExportedVae } from "./vae.js";

/** Everything that a pipeline needs beside its folder. */
export interface PipelineSurroundings {
  readonly runtime: Runtime;
  /** Rows of textual inversions for an encoder of these sizes. */
  readonly rowsOf: (sizes: Pick<TextEncoderConfig, "name" | "hidden" | "vocabulary">) => EmbeddingRows;
}

/** Classes of pipelines of diffusers, of its ONNX exports and of Optimum. */
const CLASS = /^(?:Onnx|ORT)?StableDiffusion(XL)?(?:Img2Img|Inpaint)?Pipeline$/;
const EXPECTED = "a pipeline of Stable Diffusion 1, 2 or XL";
/** Folders of the encoders in the order of their share in the context. */
const ENCODERS = {
  sd1: [["text_encoder", "l"]],
  sd2: [["text_encoder", "h"]],
  sdxl: [
    ["text_encoder", "l"],
    ["text_encoder_2", "g"],
  ],
  "sdxl-refiner": [["text_encoder_2", "g"]],
} as const satisfies Record<StableDiffusionFamily, readonly (readonly [string, TextEncoderConfig["name"]])[]>;
/** Width of an encoder where its folder does not say. */
const WIDTHS = { l: 768, h: 1024, g: 1280 } as const;
const VOCABULARY = 49408;
const CONTEXT_OF_SD2 = 1024;
/** Token that fills texts of SD 2. */
const PAD_OF_SD2 = "!";
const LATENT_CHANNELS = 4;
/** Latent, mask and masked picture. */
const INPAINT_CHANNELS = 9;

/**
 * Loads a folder of diffusers whose networks are exported to ONNX: by Optimum, or by the script of diffusers. It opens
 * files of fixed names in the folder alone, whatever their content says. Throws model.unsupported for other pipelines and
 * networks, model.invalid for damaged folders, and file.read-failed.
 */
export async function loadPipeline(folder: ModelFile, surroundings: PipelineSurroundings): Promise<Checkpoint> {
  const className = Config.read(folder, MODEL_INDEX).value("_class_name");
  const match = typeof className === "string" ? CLASS.exec(className) : null;
  if (match === null) throw unsupported(folder.name, EXPECTED, describe(className));
  const unet = Config.read(folder, "unet/config.json");
  const family = match[1] === undefined ? sdFamily(folder, unet) : xlFamily(folder);
  const vae = Config.read(folder, "vae_decoder/config.json");
  const { sampling, reading } = scheduleOf(family, Config.read(folder, "scheduler/scheduler_config.json"), vae);
  const network = await unetOf(folder, family, unet, surroundings);
  return {
    model: new CheckpointModel({ network, family, sampling, reading }),
    clip: await clipOf(folder, family, surroundings),
    vae: await vaeOf(folder, vae, surroundings),
  };
}

/** The refiner has the second encoder alone. */
const xlFamily = ({ path }: ModelFile): StableDiffusionFamily =>
  existsSync(join(path, "text_encoder")) ? "sdxl" : "sdxl-refiner";

/** SD 1 or 2, which differ in their text encoders. Exports of the script have no sizes, but special tokens. */
function sdFamily(folder: ModelFile, unet: Config): StableDiffusionFamily {
  const activation = Config.read(folder, "text_encoder/config.json").value("hidden_act");
  if (activation !== undefined) return activation === "gelu" ? "sd2" : "sd1";
  const width = unet.positive("cross_attention_dim");
  if (width !== undefined) return width === CONTEXT_OF_SD2 ? "sd2" : "sd1";
  const pad = Config.read(folder, "tokenizer/special_tokens_map.json").value("pad_token");
  return (isObject(pad) ? pad.content : pad) === PAD_OF_SD2 ? "sd2" : "sd1";
}

const open = (
  folder: ModelFile,
  { runtime }: PipelineSurroundings,
  what: string,
  component: string,
): Promise<OnnxModel> => OnnxModel.open(runtime, `${what} of ${folder.name}`, folder, component);

async function unetOf(
  folder: ModelFile,
  family: StableDiffusionFamily,
  config: Config,
  surroundings: PipelineSurroundings,
): Promise<ExportedUnet> {
  const model = await open(folder, surroundings, "UNet", "unet");
  if (config.has("out_channels")) config.oneOf("out_channels", [LATENT_CHANNELS]);
  const channels = [LATENT_CHANNELS, INPAINT_CHANNELS];
  return new ExportedUnet(model, {
    inChannels: config.has("in_channels") ? config.oneOf("in_channels", channels) : LATENT_CHANNELS,
    outChannels: LATENT_CHANNELS,
    contextDim: config.positive("cross_attention_dim"),
    hasLabel: family === "sdxl" || family === "sdxl-refiner",
    labelDim: config.positive("projection_class_embeddings_input_dim"),
  });
}

async function clipOf(
  folder: ModelFile,
  family: StableDiffusionFamily,
  surroundings: PipelineSurroundings,
): Promise<Clip> {
  const encoders: ExportedTextEncoder[] = [];
  for (const [component, name] of ENCODERS[family]) {
    const config = Config.read(folder, `${component}/config.json`);
    if (config.has("vocab_size")) config.oneOf("vocab_size", [VOCABULARY]);
    const hidden = config.positive("hidden_size") ?? WIDTHS[name];
    const model = await open(folder, surroundings, `text encoder ${name}`, component);
    const rows = surroundings.rowsOf({ name, hidden, vocabulary: VOCABULARY });
    encoders.push(new ExportedTextEncoder({ name, model, rows, ownLayer: ownLayer(family) }));
  }
  return new CheckpointClip({ encoders, family });
}

async function vaeOf(folder: ModelFile, config: Config, surroundings: PipelineSurroundings): Promise<Vae> {
  if (config.has("latent_channels")) config.oneOf("latent_channels", [LATENT_CHANNELS]);
  const decoder = await open(folder, surroundings, "VAE decoder", "vae_decoder");
  const hasEncoder = existsSync(join(folder.path, "vae_encoder"));
  const encoder = hasEncoder ? await open(folder, surroundings, "VAE encoder", "vae_encoder") : undefined;
  const networks = new ExportedVae({
    label: `VAE of ${folder.name}`,
    decoder,
    encoder,
    latentChannels: LATENT_CHANNELS,
  });
  return new CheckpointVae(networks);
}
