import { inputError } from "../../base/errors.js";
import { encodePrompt } from "../../host/prompt/index.js";
import type { Clip, Conditioning, Latent, LoaderSettings, Pipe, Warn } from "../../host/types.js";
import { composite } from "../../tensor/ops.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { choice, latent, list, mask, pipe, text } from "../inputs.js";
import { planes } from "../latents.js";
import { checkSocket } from "../sockets.js";

const KEY = "ext latentCompositeMaskedWithCond";

export const latentCompositeMaskedWithCond = defineNode({
  key: KEY,
  description: "Pastes a latent onto the pipe's and gives each text a conditioning of its own area.",
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
    throw inputError("input.wrong-type", { node: KEY, input: "text_combine" }, "a list of texts", value);
  });
}

/** The pipe's prompt with the text appended, replaced in part, or as a whole. */
function promptOf(text: string, mode: string, replaced: string, settings: LoaderSettings): string {
  if (mode === "cover") return text;
  const { positive } = settings;
  if (typeof positive !== "string") {
    const at = { node: KEY, input: "pipe.loader_settings.positive" };
    throw inputError(positive === undefined ? "input.missing" : "input.wrong-type", at, "a text", positive);
  }
  // split and join: replaceAll reads $& and the like in the new text
  return mode === "replace" && replaced !== "" ? positive.split(replaced).join(text) : `${positive},${text}`;
}

function encode(clip: Clip, prompt: string, settings: LoaderSettings, warn: Warn): Promise<Conditioning> {
  return encodePrompt(clip, prompt, {
    tokenNormalization: settings.positive_token_normalization,
    weightInterpretation: settings.positive_weight_interpretation,
    a1111PromptStyle: settings.a1111_prompt_style,
    steps: settings.steps ?? 1,
    warn,
  });
}

/** Entries with shared tensors, each limited to the area of the mask. */
const restricted = (conditioning: Conditioning, mask: Tensor): Conditioning =>
  conditioning.map(([tensor, options]) => [tensor, { ...options, mask, set_area_to_bounds: false, mask_strength: 1 }]);

function fieldOf<T>(pipe: Pipe, field: keyof Pipe, type: string): T {
  const at = { node: KEY, input: `pipe.${field}` };
  const value = pipe[field];
  if (value === undefined || value === null) throw inputError("input.missing", at, `a pipe with ${field}`, value);
  return checkSocket(type, value, at) as T;
}

/** Axes between batch and height (channels, frames) count as channels: they must match, or the source has one. */
function pasted(destination: Tensor, source: Tensor): Tensor {
  const at = { node: KEY, input: "source_latent" };
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
