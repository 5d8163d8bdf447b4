import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";
import { isObject } from "../../../base/options.js";
import { readBoundedText } from "../../../io/regular-file.js";
import { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { type ModelSampling, modelSampling } from "../../../tensor/sampling/model-sampling.js";
import type { Checkpoint, Clip, Vae } from "../../types.js";
import { CheckpointModel } from "../diffusion/model.js";
import { ofFamily, type Reading } from "../diffusion/sampling.js";
import { MODEL_INDEX } from "../files/listing.js";
import type { ModelFile } from "../files/model-folders.js";
import { OnnxModel } from "../session/onnx-model.js";
import type { Runtime } from "../session/runtime.js";
import type { TextEncoderConfig } from "../text-encoder/build.js";
import type { EmbeddingRows } from "../text-encoder/embeddings.js";
import { CheckpointClip, ExportedTextEncoder, ownLayer } from "../text-encoder/model.js";
import type { StableDiffusionFamily } from "../text-encoder/recognise.js";
import { ExportedUnet } from "../unet/exported.js";
import { CheckpointVae, ExportedVae } from "../vae/model.js";
import { invalid, type NamedFile, unsupported } from "../weights/stored.js";

/** Needed besides its folder to load a pipeline. */
export interface PipelineContext {
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
/** Width of an encoder if its folder does not say. */
const WIDTHS = { l: 768, h: 1024, g: 1280 } as const;
const VOCABULARY = 49408;
const CONTEXT_OF_SD2 = 1024;
/** Token that fills texts of SD 2. */
const PAD_OF_SD2 = "!";
const LATENT_CHANNELS = 4;
/** Latent, mask and masked picture. */
const INPAINT_CHANNELS = 9;

/**
 * Loads a folder of diffusers whose networks are exported to ONNX: by Optimum, or by the script of diffusers. It opens only
 * files with fixed names in the folder, whatever they refer to. Throws model.unsupported for other pipelines and
 * networks, model.invalid for damaged folders, and file.read-failed.
 */
export async function loadPipeline(folder: ModelFile, context: PipelineContext): Promise<Checkpoint> {
  const className = PipelineConfig.read(folder, MODEL_INDEX).value("_class_name");
  const match = typeof className === "string" ? CLASS.exec(className) : null;
  if (match === null) throw unsupported(folder.name, EXPECTED, describe(className));
  const unet = PipelineConfig.read(folder, "unet/config.json");
  const family = match[1] === undefined ? sdFamily(folder, unet) : xlFamily(folder);
  const vae = PipelineConfig.read(folder, "vae_decoder/config.json");
  const { sampling, reading } = scheduleOf(family, PipelineConfig.read(folder, "scheduler/scheduler_config.json"), vae);
  const network = await unetOf(folder, family, unet, context);
  return {
    model: new CheckpointModel({ network, family, sampling, reading }),
    clip: await clipOf(folder, family, context),
    vae: await vaeOf(folder, vae, context),
  };
}

/** The refiner has only the second encoder. */
const xlFamily = ({ path }: ModelFile): StableDiffusionFamily =>
  existsSync(join(path, "text_encoder")) ? "sdxl" : "sdxl-refiner";

/** SD 1 or 2, which differ in their text encoders. Exports of the script lack sizes but have special tokens. */
function sdFamily(folder: ModelFile, unet: PipelineConfig): StableDiffusionFamily {
  const activation = PipelineConfig.read(folder, "text_encoder/config.json").value("hidden_act");
  if (activation !== undefined) return activation === "gelu" ? "sd2" : "sd1";
  const width = unet.positive("cross_attention_dim");
  if (width !== undefined) return width === CONTEXT_OF_SD2 ? "sd2" : "sd1";
  const pad = PipelineConfig.read(folder, "tokenizer/special_tokens_map.json").value("pad_token");
  return (isObject(pad) ? pad.content : pad) === PAD_OF_SD2 ? "sd2" : "sd1";
}

const openNetwork = (
  folder: ModelFile,
  { runtime }: PipelineContext,
  what: string,
  component: string,
): Promise<OnnxModel> => OnnxModel.open(runtime, `${what} of ${folder.name}`, folder, component);

async function unetOf(
  folder: ModelFile,
  family: StableDiffusionFamily,
  config: PipelineConfig,
  context: PipelineContext,
): Promise<ExportedUnet> {
  const model = await openNetwork(folder, context, "UNet", "unet");
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

async function clipOf(folder: ModelFile, family: StableDiffusionFamily, context: PipelineContext): Promise<Clip> {
  const encoders: ExportedTextEncoder[] = [];
  for (const [component, name] of ENCODERS[family]) {
    const config = PipelineConfig.read(folder, `${component}/config.json`);
    if (config.has("vocab_size")) config.oneOf("vocab_size", [VOCABULARY]);
    const hidden = config.positive("hidden_size") ?? WIDTHS[name];
    const model = await openNetwork(folder, context, `text encoder ${name}`, component);
    const rows = context.rowsOf({ name, hidden, vocabulary: VOCABULARY });
    encoders.push(new ExportedTextEncoder({ name, model, rows, ownLayer: ownLayer(family) }));
  }
  return new CheckpointClip({ encoders, family });
}

async function vaeOf(folder: ModelFile, config: PipelineConfig, context: PipelineContext): Promise<Vae> {
  if (config.has("latent_channels")) config.oneOf("latent_channels", [LATENT_CHANNELS]);
  const decoder = await openNetwork(folder, context, "VAE decoder", "vae_decoder");
  const hasEncoder = existsSync(join(folder.path, "vae_encoder"));
  const encoder = hasEncoder ? await openNetwork(folder, context, "VAE encoder", "vae_encoder") : undefined;
  const networks = new ExportedVae({
    label: `VAE of ${folder.name}`,
    decoder,
    encoder,
    latentChannels: LATENT_CHANNELS,
  });
  return new CheckpointVae(networks);
}

/** A JSON file of a folder of diffusers. A key whose value is null counts as absent. */
class PipelineConfig {
  readonly #folder: NamedFile;
  readonly #file: string;
  readonly #values: Readonly<Record<string, unknown>>;

  private constructor(folder: NamedFile, file: string, values: Readonly<Record<string, unknown>>) {
    this.#folder = folder;
    this.#file = file;
    this.#values = values;
  }

  /** Reads a file; its name is relative to the folder. An absent one has no keys. Throws model.invalid. */
  static read(folder: NamedFile, file: string): PipelineConfig {
    const expected = `${file} to be a JSON object of at most 1 MiB`;
    try {
      const text = readBoundedText(join(folder.path, file));
      const values: unknown = text === undefined ? undefined : JSON.parse(text);
      if (!isObject(values))
        throw invalid(folder.name, expected, text === undefined ? "another file" : describe(values));
      return new PipelineConfig(folder, file, values);
    } catch (error) {
      if (error instanceof LatentkitError) throw error;
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") return new PipelineConfig(folder, file, {});
      throw invalid(folder.name, expected, code ?? "text that is not JSON");
    }
  }

  has(key: string): boolean {
    return this.value(key) !== undefined;
  }

  value(key: string): unknown {
    const value = Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
    return value === null ? undefined : value;
  }

  /** A number above 0. Throws model.invalid for any other value. */
  positive(key: string): number | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === "number" && Number.isFinite(value) && value > 0)) return value;
    throw invalid(this.#folder.name, `${key} of ${this.#file} to be a number above 0`, describe(value));
  }

  /** Throws model.unsupported for a key that has a value. */
  requireAbsent(key: string): void {
    if (this.has(key)) throw this.#unsupported(key, "none");
  }

  /** A value that has to be one of these. Throws model.unsupported for any other and if it is absent. */
  oneOf<Value extends string | number>(key: string, allowed: readonly Value[]): Value {
    const value = this.value(key);
    const found = allowed.find((each) => each === value);
    if (found !== undefined) return found;
    throw this.#unsupported(key, allowed.map(describe).join(" or "));
  }

  #unsupported(key: string, expected: string): LatentkitError {
    return unsupported(this.#folder.name, `${key} of ${this.#file} to be ${expected}`, describe(this.value(key)));
  }
}

/** Noise levels of a pipeline, and what its UNet predicts. */
export interface Schedule {
  readonly sampling: ModelSampling;
  readonly reading: Reading;
}

const READINGS = { epsilon: "eps", v_prediction: "v", sample: "x0" } as const satisfies Record<string, Reading>;
const PREDICTIONS = Object.keys(READINGS) as (keyof typeof READINGS)[];
const TIMESTEPS = 1000;
/** Scale of latents that the class of diffusers assumes. */
const SCALE = 0.18215;

/**
 * The schedule of a pipeline: betas as the scheduler's file has them, latents scaled as the VAE's has it. Samplers and
 * spacing are the graph's. Throws model.unsupported for other schedules and for latents with a shift, and model.invalid.
 */
function scheduleOf(family: StableDiffusionFamily, scheduler: PipelineConfig, vae: PipelineConfig): Schedule {
  scheduler.oneOf("beta_schedule", ["scaled_linear"]);
  if (scheduler.has("num_train_timesteps")) scheduler.oneOf("num_train_timesteps", [TIMESTEPS]);
  scheduler.requireAbsent("trained_betas");
  for (const key of ["shift_factor", "latents_mean", "latents_std"]) vae.requireAbsent(key);
  const prediction = scheduler.has("prediction_type") ? scheduler.oneOf("prediction_type", PREDICTIONS) : "epsilon";
  const table = modelSampling(prediction === "v_prediction" ? "sd21-v" : "sd15", {
    linearStart: scheduler.positive("beta_start"),
    linearEnd: scheduler.positive("beta_end"),
    zsnr: scheduler.value("rescale_betas_zero_snr") === true,
  });
  const format = LATENT_FORMATS[family === "sdxl" || family === "sdxl-refiner" ? "SDXL" : "SD15"];
  const scaleFactor = vae.positive("scaling_factor") ?? SCALE;
  return {
    sampling: ofFamily(table, family, Object.freeze({ ...format, scaleFactor })),
    reading: READINGS[prediction],
  };
}
