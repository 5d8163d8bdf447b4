import { encodePrompt, TOKEN_NORMALIZATIONS, WEIGHT_INTERPRETATIONS } from "../../host/prompt/index.js";
import type { LoaderSettings, Pipe } from "../../host/types.js";
import { emptyLatent, latentBatch, latentSide } from "../core/latent/empty-latent-image.js";
import { checkpointName } from "../core/loaders/checkpoint-loader-simple.js";
import { defineNode } from "../define.js";
import { boolean, choice, int, text } from "../inputs.js";

const prompt = () => text({ default: "", multiline: true, strict: true });
const normalization = () => choice(TOKEN_NORMALIZATIONS, { optional: true, default: "none" });
const interpretation = () => choice(WEIGHT_INTERPRETATIONS, { optional: true, default: "comfy" });

export const pipeLoader = defineNode({
  key: "ext pipeLoader",
  displayName: "Pipe Loader",
  category: "ext/pipe",
  description: "Loads a checkpoint, encodes both prompts and makes an empty latent: everything a pipe holds.",
  inputs: {
    ckpt_name: checkpointName(),
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
  run: async ({ ckpt_name, ...settings }, { host, signal }) => {
    const { model, clip, vae } = await host.loadCheckpoint(ckpt_name, signal);
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
        }),
      ),
    );
    const loader_settings: LoaderSettings = { ckpt_name, ...settings };
    const pipe: Pipe = { model, vae, clip, positive, negative, samples, loader_settings };
    return { pipe, model, vae, clip };
  },
});
