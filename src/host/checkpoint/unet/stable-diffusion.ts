import { square } from "../../../native/elementary.js";
import { type CheckpointParts, type ModelFamily, networkPart, withVae } from "../diffusion/family.js";
import type { CheckpointSampling } from "../diffusion/sampling.js";
import { type ModelHeader, numberOf, type Part } from "../recognition/part.js";
import { isOwnModel, kindInWords, OWN_FAMILIES } from "../recognition/refusal.js";
import type { TextEncoderConfig } from "../text-encoder/build.js";
import {
  type FoundEncoder,
  findTextEncoders,
  type StableDiffusionFamily,
  type TextEncoderName,
  TOKEN_TABLES,
  textEncoderPart,
} from "../text-encoder/recognise.js";
import { invalid, type StoredWeight, unsupported } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import type { UnetConfig } from "./build.js";
import { BuiltUnet } from "./model.js";
import { type FoundUnet, findUnet, hasUnet, unetPart } from "./recognise.js";

const EXPECTED = `a checkpoint of ${OWN_FAMILIES}`;
const LATENT_CHANNELS = 4;
/** Latent, mask and masked picture. */
const INPAINT_CHANNELS = 9;
/** Kinds of models by the channels that their UNets take. */
const OTHER_CHANNELS: Readonly<Record<number, string>> = {
  5: "a model with a depth map beside the latent",
  7: "a model that upscales or takes a depth map beside the latent",
  8: "an InstructPix2Pix model",
};
/** Numbers of sizes and crops in the label of SDXL, and of its refiner, each embedded in 256. */
const SIZES = { sdxl: 6 * 256, "sdxl-refiner": 5 * 256 } as const;
/** Deviation of a bias above which SD 2 was trained to predict v. Source: measured on the published checkpoints. */
const V_DEVIATION = 0.09;
/** Noise levels of continuous schedules (EDM) that the file does not name. */
const EDM_SIGMAS = { min: 0.002, max: 80 };
const V_KEY = "output_blocks.11.1.transformer_blocks.0.norm1.bias";
/** Relatives with the layers of a UNet and others beside them. */
const RELATIVES = [".time_stack.", ".time_mixer.", ".noise_augmentor.", ".encoder_hid_proj.", ".position_net."];

/** Names of the families for their users. */
export const WORDS: Readonly<Record<StableDiffusionFamily, string>> = {
  sd1: "SD 1",
  sd2: "SD 2",
  sdxl: "SDXL",
  "sdxl-refiner": "SDXL refiner",
};

/** Stable Diffusion 1, 2 and XL. It refuses files without a UNet and says what they are. */
export const stableDiffusion: ModelFamily = {
  has: hasUnet,
  parts: stableDiffusionParts,
};

function* stableDiffusionParts(file: ModelHeader): Generator<undefined, CheckpointParts> {
  const found = requireUnet(file);
  const unet = unetPart(file, found, EXPECTED);
  yield;
  const { config } = unet;
  if (config.outChannels !== LATENT_CHANNELS)
    throw unsupported(file.name, EXPECTED, `one with ${config.outChannels} output channels`);
  const encoders = findTextEncoders(file.weights);
  const family = familyOf(file, config, encoders);
  const textEncoders = textEncodersOf(file, family, config.contextDim, encoders);
  yield;
  const pooledWidth = pooledWidthOf(family, config);
  checkContext(file, { ...config, pooledWidth }, textEncoders);
  return withVae(file, {
    family,
    words: WORDS[family],
    sampling: (read) => samplingOf({ file, family, unet, prefix: found.prefix }, read),
    network: networkPart("UNet", { ...unet, config: { ...config, pooledWidth } }, BuiltUnet),
    textEncoders: textEncoders.map((part) => ({ kind: "clip", part })),
    encoderCount: family === "sdxl" ? 2 : 1,
    clipFamily: family,
    inpaint: config.inChannels === INPAINT_CHANNELS,
  });
}

/** The UNet of a file. Throws model.unsupported for another family, by its name. */
function requireUnet(file: ModelHeader): FoundUnet {
  const found = findUnet(file);
  const relative = RELATIVES.some((part) => hasPart(file, part));
  if (found === undefined || relative) {
    const kind = kindInWords(file.weights);
    throw unsupported(file.name, EXPECTED, isOwnModel(kind) ? kind.replace("a ", "an incomplete ") : kind);
  }
  checkChannels(file, found.weights.get("input_blocks.0.0.weight")?.shape[1]);
  return found;
}

const hasPart = ({ weights }: ModelHeader, part: string): boolean =>
  [...weights.keys()].some((key) => `.${key}`.includes(part));

function checkChannels(file: ModelHeader, channels: number | undefined): void {
  if (channels === undefined || channels === LATENT_CHANNELS || channels === INPAINT_CHANNELS) return;
  const kind = OTHER_CHANNELS[channels];
  const name = kind === undefined ? "a model" : `${kind},`;
  throw unsupported(file.name, `${EXPECTED} with 4 or 9 input channels`, `${name} with ${channels}`);
}

function familyOf(file: ModelHeader, config: UnetConfig, encoders: readonly FoundEncoder[]): StableDiffusionFamily {
  const { labelDim, contextDim, linearProjection, input } = config;
  if (labelDim === undefined) return linearProjection ? "sd2" : "sd1";
  const [only, second] = encoders;
  if (second !== undefined) return "sdxl";
  if (only !== undefined) return widthOf(file, only) === contextDim ? "sdxl-refiner" : "sdxl";
  // the refiner's context is as wide as its pooled text; its last level has no transformer
  const isFlat = input.at(-1)!.depth === 0;
  if (isFlat && labelDim - SIZES["sdxl-refiner"] === contextDim) return "sdxl-refiner";
  const pooled = labelDim - SIZES.sdxl;
  if (isFlat || pooled <= 0 || pooled >= contextDim) throw wrongLabel(file, labelDim);
  return "sdxl";
}

const wrongLabel = (file: ModelHeader, labelDim: number): Error =>
  unsupported(file.name, EXPECTED, `one with a label of ${labelDim} numbers, as unCLIP models have`);

const widthOf = ({ weights }: ModelHeader, { layout, prefix }: FoundEncoder): number | undefined =>
  weights.get(`${prefix}${TOKEN_TABLES[layout]}`)?.shape[1];

/** The encoders that a family uses, in the order of its context. */
function textEncodersOf(
  file: ModelHeader,
  family: StableDiffusionFamily,
  contextDim: number,
  found: readonly FoundEncoder[],
): readonly Part<TextEncoderConfig>[] {
  const part = (encoder: FoundEncoder, name: TextEncoderName) => textEncoderPart(file, encoder, name);
  if (family === "sdxl") {
    const first = found.find(({ layout }) => layout === "hf");
    const second = found.find((encoder) => encoder.layout === "openclip") ?? found.find((encoder) => encoder !== first);
    return [...(first === undefined ? [] : [part(first, "l")]), ...(second === undefined ? [] : [part(second, "g")])];
  }
  const own = found.find((encoder) => widthOf(file, encoder) === contextDim) ?? found[0];
  if (own === undefined) return [];
  const names = { sd1: own.layout === "hf" ? "l" : "h", sd2: "h", "sdxl-refiner": "g" } as const;
  return [part(own, names[family])];
}

const pooledWidthOf = (family: StableDiffusionFamily, { labelDim }: UnetConfig): number | undefined =>
  labelDim !== undefined && (family === "sdxl" || family === "sdxl-refiner") ? labelDim - SIZES[family] : undefined;

/** The encoders together are as wide as the context, and the last has a pooled text of the width that the label takes. */
function checkContext(
  file: ModelHeader,
  { contextDim, labelDim, pooledWidth }: UnetConfig,
  encoders: readonly Part<TextEncoderConfig>[],
): void {
  if (encoders.length === 0) return;
  const width = encoders.reduce((sum, { config }) => sum + config.hidden, 0);
  if (width !== contextDim)
    throw invalid(file.name, `text encoders of ${contextDim} channels, as its UNet takes`, `${width}`);
  if (labelDim === undefined || pooledWidth === undefined) return;
  const pooled = encoders.at(-1)!.config.projection?.size;
  if (pooled === undefined) throw invalid(file.name, "a text encoder with text_projection", "one without");
  if (pooled !== pooledWidth) throw wrongLabel(file, labelDim);
}

interface FoundParts {
  readonly file: ModelHeader;
  readonly family: StableDiffusionFamily;
  readonly unet: Part<UnetConfig>;
  readonly prefix: string;
}

/** Noise levels and latents of a checkpoint, which some files mark. Throws model.invalid. */
async function samplingOf({ file, family, unet, prefix }: FoundParts, read: ReadValues): Promise<CheckpointSampling> {
  const mark = (key: string): StoredWeight | undefined => file.weights.get(key) ?? file.weights.get(prefix + key);
  const discrete = { schedule: "discrete", zeroTerminalSnr: false } as const;
  if (family === "sd1") return { ...discrete, prediction: "eps", latentFormat: "SD15" };
  if (family === "sd2") {
    const bias = unet.config.inChannels === LATENT_CHANNELS ? unet.weights.get(V_KEY) : undefined;
    const isV = bias !== undefined && deviationOf(await read(bias)) > V_DEVIATION;
    return { ...discrete, prediction: isV ? "v" : "eps", latentFormat: "SD15" };
  }
  const number = async (key: string, absent: number): Promise<number> => {
    const weight = mark(key);
    return weight === undefined ? absent : numberOf(file.name, weight, read);
  };
  // the tensors repeat the published values of the format
  if (mark("edm_mean") !== undefined && mark("edm_std") !== undefined) {
    return {
      ...discrete,
      schedule: "edm",
      prediction: "edm",
      sigmaMin: EDM_SIGMAS.min,
      sigmaMax: EDM_SIGMAS.max,
      latentFormat: "SDXL_Playground_2_5",
    };
  }
  if (mark("edm_vpred.sigma_max") !== undefined) {
    const sigmaMin = await number("edm_vpred.sigma_min", EDM_SIGMAS.min);
    const sigmaMax = await number("edm_vpred.sigma_max", EDM_SIGMAS.max);
    if (!(sigmaMin > 0 && sigmaMin < sigmaMax))
      throw invalid(file.name, "edm_vpred.sigma_max above edm_vpred.sigma_min above 0", `${sigmaMax} and ${sigmaMin}`);
    return { ...discrete, schedule: "edm", prediction: "edm-v", sigmaMin, sigmaMax, latentFormat: "SDXL" };
  }
  const isV = mark("v_pred") !== undefined;
  const zeroTerminalSnr = isV && mark("ztsnr") !== undefined;
  return { schedule: "discrete", prediction: isV ? "v" : "eps", zeroTerminalSnr, latentFormat: "SDXL" };
}

/** Standard deviation of all values. */
function deviationOf(numbers: ArrayLike<number>): number {
  const values = Array.from(numbers);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + square(value - mean), 0) / values.length);
}
