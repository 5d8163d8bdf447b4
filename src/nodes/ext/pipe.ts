import { inputError } from "../../base/errors.js";
import { encodePrompt } from "../../host/prompt/encode.js";
import { TOKEN_NORMALIZATIONS, WEIGHT_INTERPRETATIONS } from "../../host/prompt/options.js";
import type { Checkpoint, Clip, Conditioning, Latent, LoaderSettings, Pipe, Warn } from "../../host/types.js";
import { composite } from "../../tensor/ops.js";
import type { Tensor } from "../../tensor/tensor.js";
import { emptyLatent, latentBatch, latentSide } from "../core/latent.js";
import { checkpointName, loraStrength, withLora } from "../core/loaders.js";
import { defineNode } from "../define.js";
import { lacking, loadHostCheckpoint, loadHostFile } from "../host-files.js";
import { boolean, choice, clip, conditioning, int, latent, list, mask, model, pipe, text, vae } from "../inputs.js";
import { planes } from "../latents.js";
import { checkSocket } from "../sockets.js";

const prompt = () => text({ default: "", multiline: true, strict: true });
const normalization = () => choice(TOKEN_NORMALIZATIONS, { optional: true, default: "none" });
const interpretation = () => choice(WEIGHT_INTERPRETATIONS, { optional: true, default: "comfy" });
/** Choices that do not name a file. */
const BAKED_VAE = "Baked VAE";
const NO_LORA = "None";

/** A file of the host, or the choice without one. */
const fileOr = (kind: "vae" | "loras", none: string, tooltip: string) => ({
  ...choice(
    ({ host }) => {
      const files = host?.files?.(kind);
      return files && [none, ...files];
    },
    { optional: true, default: none, tooltip },
  ),
  files: kind,
});

export const pipeLoader = defineNode({
  key: "ext pipeLoader",
  displayName: "Pipe Loader",
  category: "ext/pipe",
  description: "Loads a checkpoint, encodes both prompts and makes an empty latent: everything a pipe holds.",
  inputs: {
    ckpt_name: checkpointName(),
    vae_name: fileOr("vae", BAKED_VAE, `A VAE of the host; ${BAKED_VAE}: the checkpoint's own.`),
    clip_skip: int({
      optional: true,
      default: 0,
      min: -24,
      max: 0,
      tooltip: "Layer at which the clip stops, counted from the end (-1 is the last); 0: the checkpoint's own.",
    }),
    lora_name: fileOr("loras", NO_LORA, `A LoRA of the host; ${NO_LORA}: no LoRA.`),
    lora_model_strength: { ...loraStrength(), optional: true },
    lora_clip_strength: { ...loraStrength(), optional: true },
    positive: prompt(),
    negative: prompt(),
    batch_size: latentBatch(),
    empty_latent_width: latentSide(),
    empty_latent_height: latentSide(),
    positive_token_normalization: normalization(),
    positive_weight_interpretation: interpretation(),
    negative_token_normalization: normalization(),
    negative_weight_interpretation: interpretation(),
    a1111_prompt_style: boolean({ optional: true, default: false }),
    steps: int({ optional: true, default: 20, min: 1, max: 10000 }),
  },
  outputs: [
    { name: "pipe", type: "PIPE_LINE" },
    { name: "model", type: "MODEL" },
    { name: "vae", type: "VAE" },
    { name: "clip", type: "CLIP" },
  ],
  run: async ({ ckpt_name, ...settings }, { host, signal, log }) => {
    const { model, clip, vae } = await loaded(ckpt_name, settings, { host, signal, log });
    const { batch_size, empty_latent_height, empty_latent_width } = settings;
    const { channels } = model.sampling.latentFormat;
    // before the prompts: a latent that is too large is refused at once
    const samples = { samples: emptyLatent(batch_size, channels, empty_latent_height, empty_latent_width) };
    const [positive, negative] = await Promise.all(
      (["positive", "negative"] as const).map((side) => encode(clip, settings[side], settings, log, side)),
    );
    const loader_settings: LoaderSettings = { ckpt_name, ...settings };
    const pipe: Pipe = { model, vae, clip, positive, negative, samples, loader_settings };
    return { pipe, model, vae, clip };
  },
});

interface Adapters {
  readonly vae_name: string;
  readonly clip_skip: number;
  readonly lora_name: string;
  readonly lora_model_strength: number;
  readonly lora_clip_strength: number;
}

/** The checkpoint with the VAE, the LoRA and the last layer of the clip that the inputs name, in this order. */
async function loaded(
  ckpt_name: string,
  adapters: Adapters,
  loading: Parameters<typeof withLora>[4],
): Promise<Checkpoint> {
  const { vae_name, clip_skip, lora_name, lora_model_strength, lora_clip_strength } = adapters;
  const { host } = loading;
  const checkpoint = await loadHostCheckpoint(ckpt_name, loading);
  const vae = vae_name === BAKED_VAE ? checkpoint.vae : await loadHostFile("vae", "vae_name", vae_name, loading);
  const strengths = { model: lora_model_strength, clip: lora_clip_strength };
  const [model, ownClip] =
    lora_name === NO_LORA
      ? [checkpoint.model, checkpoint.clip]
      : await withLora(lora_name, checkpoint.model, checkpoint.clip, strengths, loading);
  const clip = ownClip ?? checkpoint.clip;
  if (clip_skip === 0) return { model, clip, vae };
  if (clip.atLayer === undefined) throw lacking(host, "has no earlier layers of this clip; set clip_skip to 0");
  return { model, clip: clip.atLayer(clip_skip), vae };
}

export const pipeOut = defineNode({
  key: "ext pipeOut",
  displayName: "Pipe Out",
  category: "ext/pipe",
  description: "Takes a pipe apart; parts that it lacks are null.",
  inputs: { pipe: pipe() },
  outputs: [
    { name: "pipe", type: "PIPE_LINE" },
    { name: "model", type: "MODEL", nullable: true },
    { name: "positive", type: "CONDITIONING", nullable: true },
    { name: "negative", type: "CONDITIONING", nullable: true },
    { name: "latent", type: "LATENT", nullable: true },
    { name: "vae", type: "VAE", nullable: true },
    { name: "clip", type: "CLIP", nullable: true },
  ],
  run: ({ pipe }) => ({
    pipe,
    model: pipe.model ?? null,
    positive: pipe.positive ?? null,
    negative: pipe.negative ?? null,
    latent: pipe.samples ?? null,
    vae: pipe.vae ?? null,
    clip: pipe.clip ?? null,
  }),
});

export const pipeEdit = defineNode({
  key: "ext pipeEdit",
  displayName: "Pipe Edit",
  category: "ext/pipe",
  description: "A copy of a pipe in which the inputs replace its parts.",
  inputs: {
    pipe: pipe(),
    model: model({ optional: true }),
    positive: conditioning({ optional: true }),
    negative: conditioning({ optional: true }),
    latent: latent({ optional: true }),
    vae: vae({ optional: true }),
    clip: clip({ optional: true }),
  },
  outputs: { pipe: "PIPE_LINE" },
  run: ({ pipe, model, positive, negative, latent: samples, vae, clip }) => {
    const parts = Object.entries({ model, positive, negative, vae, clip, samples }).filter(
      ([, part]) => part !== undefined && part !== null,
    );
    const edited: Pipe = { ...pipe, ...Object.fromEntries(parts) };
    return { pipe: edited };
  },
});

const COMPOSITE_KEY = "ext latentCompositeMaskedWithCond";

export const latentCompositeMaskedWithCond = defineNode({
  key: COMPOSITE_KEY,
  description: "Pastes a latent onto the pipe's and gives each text a conditioning for its own area.",
  deprecated: true,
  inputs: {
    pipe: pipe(),
    text_combine: list(),
    source_latent: latent(),
    source_mask: mask(),
    destination_mask: mask(),
    text_combine_mode: choice(["add", "replace", "cover"], { default: "add" }),
    replace_text: text({ default: "", strict: true }),
  },
  outputs: [
    { name: "pipe", type: "PIPE_LINE" },
    { name: "latent", type: "LATENT" },
    { name: "conditioning", type: "CONDITIONING", list: true },
  ],
  hidden: { prompt: "PROMPT", extra_pnginfo: "EXTRA_PNGINFO", my_unique_id: "UNIQUE_ID" },
  run: async (inputs, { signal, log }) => {
    const { pipe, source_mask, destination_mask } = inputs;
    const texts = textsOf(inputs.text_combine);
    const settings = pipe.loader_settings ?? {};
    const destination = fieldOf<Latent>(pipe, "samples", "LATENT");
    const samples = pasted(destination.samples, inputs.source_latent.samples);
    const prompts = texts.map((text) => promptOf(text, inputs.text_combine_mode, inputs.replace_text, settings));
    const conditioning: Conditioning[] = [];
    if (prompts.length > 0) {
      const clip = fieldOf<Clip>(pipe, "clip", "CLIP");
      const before = restricted(fieldOf<Conditioning>(pipe, "positive", "CONDITIONING"), source_mask);
      for (const prompt of prompts) {
        signal.throwIfAborted();
        conditioning.push([...before, ...restricted(await encode(clip, prompt, settings, log), destination_mask)]);
      }
    }
    const latent: Latent = { ...destination, samples };
    const loader_settings: LoaderSettings = { ...settings, ...(prompts.length > 0 && { positive: prompts.at(-1) }) };
    return { pipe: { ...pipe, samples: latent, loader_settings }, latent, conditioning };
  },
});

function textsOf(values: readonly unknown[]): string[] {
  return values.map((value) => {
    if (typeof value === "string") return value;
    throw inputError("input.wrong-type", { node: COMPOSITE_KEY, input: "text_combine" }, "a list of texts", value);
  });
}

/** The pipe's prompt with the text appended, replaced in part, or as a whole. */
function promptOf(text: string, mode: string, replaced: string, settings: LoaderSettings): string {
  if (mode === "cover") return text;
  const { positive } = settings;
  if (typeof positive !== "string") {
    const at = { node: COMPOSITE_KEY, input: "pipe.loader_settings.positive" };
    throw inputError(positive === undefined ? "input.missing" : "input.wrong-type", at, "a text", positive);
  }
  // split and join: replaceAll reads $& and the like in the new text
  return mode === "replace" && replaced !== "" ? positive.split(replaced).join(text) : `${positive},${text}`;
}

/** Encodes a prompt as the settings of a pipe's side say. */
function encode(
  clip: Clip,
  prompt: string,
  settings: LoaderSettings,
  warn: Warn,
  side: "positive" | "negative" = "positive",
): Promise<Conditioning> {
  return encodePrompt(clip, prompt, {
    tokenNormalization: settings[`${side}_token_normalization`],
    weightInterpretation: settings[`${side}_weight_interpretation`],
    a1111PromptStyle: settings.a1111_prompt_style,
    steps: settings.steps ?? 1,
    warn,
  });
}

/** Entries with shared tensors, each limited to the area of the mask. */
const restricted = (conditioning: Conditioning, mask: Tensor): Conditioning =>
  conditioning.map(([tensor, options]) => [tensor, { ...options, mask, set_area_to_bounds: false, mask_strength: 1 }]);

function fieldOf<T>(pipe: Pipe, field: keyof Pipe, type: string): T {
  const at = { node: COMPOSITE_KEY, input: `pipe.${field}` };
  const value = pipe[field];
  if (value === undefined || value === null) throw inputError("input.missing", at, `a pipe with ${field}`, value);
  return checkSocket(type, value, at) as T;
}

/** Axes between batch and height (channels, frames) count as channels: they must match, or the source has one. */
function pasted(destination: Tensor, source: Tensor): Tensor {
  const at = { node: COMPOSITE_KEY, input: "source_latent" };
  const inner = destination.shape.slice(1, -2).join(", ");
  const sourceInner = source.shape.slice(1, -2);
  const isSingle = sourceInner.every((side) => side === 1);
  if (source.shape.length !== destination.shape.length || (sourceInner.join(", ") !== inner && !isSingle)) {
    const expected = `a latent with ${inner} channels as the pipe's, or one (the pipe's is [${destination.shape.join(", ")}])`;
    throw inputError("input.invalid", at, expected, source);
  }
  if (source.shape[0] === 0) throw inputError("input.invalid", at, "a latent with at least one item", source);
  return composite(planes(destination), planes(source)).reshape(destination.shape);
}
