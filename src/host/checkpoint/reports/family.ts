import { describe, LatentkitError } from "../../../base/errors.js";
import { KIND_WORDS, type ModelKind } from "../files/kinds.js";
import { controlNetPart } from "../recognition/controlnet.js";
import { foreignKind } from "../recognition/foreign.js";
import { recogniseLora } from "../recognition/lora.js";
import { recogniseCheckpoint } from "../recognition/recognise.js";
import type { Family, RecognisedCheckpoint } from "../recognition/recognised.js";
import { unsupported } from "../recognition/refusal.js";
import { taesdPart } from "../recognition/taesd.js";
import { recogniseTextEncoders } from "../recognition/text-encoder.js";
import { zImageControlPart } from "../recognition/transformers/z-image-control.js";
import { upscalerPart } from "../recognition/upscaler.js";
import { type RecognisedVae, recogniseVae } from "../recognition/vae.js";
import { refuseUnknown } from "../weights/lora/changes.js";
import type { WeightFile } from "../weights/stored.js";
import { readValues } from "../weights/values.js";

const FAMILY_WORDS: Readonly<Record<Family, string>> = {
  sd1: "SD 1",
  sd2: "SD 2",
  sdxl: "SDXL",
  "sdxl-refiner": "SDXL refiner",
  "z-image": "Z-Image",
  flux: "Flux.1 dev",
  "flux-schnell": "Flux.1 schnell",
};

const LANGUAGE_MODELS = { qwen3: "Qwen3", t5: "T5" } as const;

/**
 * Recognises a model file of a folder, in words: "SDXL inpainting", "LoRA (kohya)". Throws model.unsupported and
 * model.invalid where the host would not load it.
 */
export async function familyInWords(kind: ModelKind, name: string, file: WeightFile): Promise<string> {
  switch (kind) {
    case "checkpoints":
    case "diffusion_models":
      return checkpointInWords(await recogniseCheckpoint(file, readValues));
    case "text_encoders":
      return `text encoder ${recogniseTextEncoders(file)
        .map(({ kind, part }) => (kind === "clip" ? part.config.name : LANGUAGE_MODELS[kind]))
        .join(" and ")}`;
    case "vae":
      return vaeInWords(recogniseVae(file));
    case "vae_approx":
      return taesdPart(file) === undefined ? vaeInWords(recogniseVae(file)) : TINY;
    case "loras":
      return loraInWords(file);
    case "controlnet": {
      const { config, isDifference } = controlNetPart(file);
      const family = config.labelDim !== undefined ? "sdxl" : config.linearProjection ? "sd2" : "sd1";
      return `ControlNet of ${FAMILY_WORDS[family]}${isDifference ? ", as differences" : ""}`;
    }
    case "upscale_models": {
      const { config } = upscalerPart(file);
      return `${config.kind === "rrdb" ? "ESRGAN" : "compact RealESRGAN"} x${config.scale}`;
    }
    case "model_patches": {
      const { channels } = zImageControlPart(file).config;
      return `ControlNet of Z-Image (Fun), ${channels} channels`;
    }
    case "embeddings":
      return embeddingInWords(file);
    default:
      throw new LatentkitError("model.unsupported", `Model ${describe(name)}: latentkit loads no ${KIND_WORDS[kind]}.`);
  }
}

function checkpointInWords({ family, sampling, inpaint, textEncoders, vae }: RecognisedCheckpoint): string {
  const { prediction, latentFormat } = sampling;
  const words = [
    FAMILY_WORDS[family],
    ...(prediction === "v" || prediction === "edm-v" ? ["v"] : []),
    ...(latentFormat === "SDXL_Playground_2_5" ? ["Playground 2.5"] : []),
    ...(inpaint ? ["inpainting"] : []),
  ].join(" ");
  const absent = [...(textEncoders.length === 0 ? ["text encoder"] : []), ...(vae === undefined ? ["VAE"] : [])];
  return absent.length === 0 ? words : `${words}, without ${absent.join(" and ")}`;
}

const TINY = "tiny autoencoder (TAESD)";

function vaeInWords({ kind, part }: RecognisedVae): string {
  if (kind === "taesd") return TINY;
  const { latentChannels } = part.config;
  return latentChannels === 4 ? "VAE" : `VAE, ${latentChannels} channels`;
}

/** Ways of training programs to name layers, by the beginnings of those names. */
const LORA_STYLES = [
  ["kohya", /^lora_(?:unet|te\d?)_/],
  ["OneTrainer", /^lora_transformer_/],
  ["LyCORIS", /^lycoris_/],
  ["PEFT", /^base_model\./],
  ["ai-toolkit", /^diffusion_model\./],
  ["diffusers", /^(?:unet|transformer|text_encoder(?:_[23])?|down_blocks|mid_block|up_blocks)\./],
] as const;

/** Forms of LoRAs by a tensor that each has. */
const FORMS = [
  ["up", "LoRA"],
  ["mid", "LoCon"],
  ["hada_", "LoHa"],
  ["lokr_", "LoKr"],
] as const;

async function loraInWords(file: WeightFile): Promise<string> {
  const lora = await recogniseLora(file, readValues);
  const { modules } = lora;
  refuseUnknown(lora, modules);
  const names = [...modules.keys()];
  const roles = new Set([...modules.values()].flatMap(({ tensors }) => [...tensors.keys()]));
  const has = (beginning: string) => [...roles].some((role) => role.startsWith(beginning));
  const style = LORA_STYLES.find(([, beginning]) => names.some((name) => beginning.test(name)))?.[0] ?? "plain names";
  const forms = FORMS.filter(([beginning]) => has(beginning)).map(([, form]) => form);
  return `${forms.join(", ") || "LoRA of differences"} (${style}${roles.has("dora_scale") ? ", DoRA" : ""})`;
}

function embeddingInWords({ path, weights }: WeightFile): string {
  const named = weights.get("clip_g") ?? weights.get("clip_l") ?? weights.get("emb_params");
  const [only] = weights.values();
  const rows = named ?? (weights.size === 1 ? only : undefined);
  if (rows === undefined || rows.shape.length < 1 || rows.shape.length > 2)
    throw unsupported(path, "an embedding", foreignKind(weights) ?? "unknown keys");
  const tokens = rows.shape.length === 1 ? 1 : rows.shape[0]!;
  const family = weights.has("clip_g") ? " of SDXL" : "";
  return `embedding${family}, ${tokens} ${tokens === 1 ? "token" : "tokens"} of ${rows.shape.at(-1)}`;
}
