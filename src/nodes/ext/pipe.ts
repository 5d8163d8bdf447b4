import { encodePrompt, TOKEN_NORMALIZATIONS, WEIGHT_INTERPRETATIONS } from "../../host/prompt/index.js";
import type { Checkpoint, LoaderSettings, Pipe } from "../../host/types.js";
import { loraStrength, withLora } from "../core/adapters.js";
import { emptyLatent, latentBatch, latentSide } from "../core/empty-latents.js";
import { checkpointName } from "../core/loaders.js";
import { defineNode } from "../define.js";
import { lacking, loadHostCheckpoint, loadHostFile } from "../host-files.js";
import { boolean, choice, clip, conditioning, int, latent, model, pipe, text, vae } from "../inputs.js";

const prompt = () => text({ default: "", multiline: true, strict: true });
const normalization = () => choice(TOKEN_NORMALIZATIONS, { optional: true, default: "none" });
const interpretation = () => choice(WEIGHT_INTERPRETATIONS, { optional: true, default: "comfy" });
/** Choices that stand for no file. */
const BAKED_VAE = "Baked VAE";
const NO_LORA = "None";

/** A file of the host, or the choice that stands for none. */
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
    const { batch_size, empty_latent_height, empty_latent_width, a1111_prompt_style, steps } = settings;
    const { channels } = model.sampling.latentFormat;
    // before the prompts: a latent that is too large is refused at once
    const samples = { samples: emptyLatent(batch_size, channels, empty_latent_height, empty_latent_width) };
    const [positive, negative] = await Promise.all(
      (["positive", "negative"] as const).map((side) =>
        encodePrompt(clip, settings[side], {
          tokenNormalization: settings[`${side}_token_normalization`],
          weightInterpretation: settings[`${side}_weight_interpretation`],
          a1111PromptStyle: a1111_prompt_style,
          steps,
          warn: log,
        }),
      ),
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
  const checkpoint = await loadHostCheckpoint({ ckpt_name }, loading);
  const vae = vae_name === BAKED_VAE ? checkpoint.vae : await loadHostFile("vae", { vae_name }, loading);
  const strengths = { model: lora_model_strength, clip: lora_clip_strength };
  const [model, ownClip] =
    lora_name === NO_LORA
      ? [checkpoint.model, checkpoint.clip]
      : await withLora(lora_name, checkpoint.model, checkpoint.clip, strengths, loading);
  const clip = ownClip ?? checkpoint.clip;
  if (clip_skip === 0) return { model, clip, vae };
  if (clip.atLayer === undefined) throw lacking(host, "no earlier layers of a clip, which clip_skip asks for");
  return { model, clip: clip.atLayer(clip_skip), vae };
}

export const pipeOut = defineNode({
  key: "ext pipeOut",
  displayName: "Pipe Out",
  category: "ext/pipe",
  description: "Takes a pipe apart; what it does not hold is null.",
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
