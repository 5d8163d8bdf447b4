import { LatentkitError } from "../../base/errors.js";
import type { Host } from "../../host/host.js";
import { encodePlain, encodeSides } from "../../host/prompt/encode.js";
import type { Clip, Conditioning, Vae, Warn } from "../../host/types.js";
import { firstChannels } from "../../tensor/channels.js";
import { resizeImage } from "../../tensor/resize.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { fourSides } from "../../tensor/shape.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { encodeTexts, textsClip } from "../host-files.js";
import { choice, clip, float, image, int, text, vae } from "../inputs.js";
import { withOptions, withReferences } from "./conditioning.js";

const prompt = () => text({ multiline: true, dynamicPrompts: true });

const pixels = (value: number) => int({ default: value, min: 0, max: 16384 });

const tokens = () => int({ default: 0, min: 0, max: 10000, step: 1 });

export const textNodes = [
  defineNode({
    key: "CLIPSetLastLayer",
    displayName: "CLIP Set Last Layer",
    category: "conditioning",
    description: "Makes a clip stop at an earlier layer, counted from the end; -1 is the last.",
    inputs: { clip: clip(), stop_at_clip_layer: int({ default: -1, min: -24, max: -1, step: 1 }) },
    outputs: { CLIP: "CLIP" },
    run: ({ clip, stop_at_clip_layer: layer }, { host }) => {
      if (clip.atLayer !== undefined) return { CLIP: clip.atLayer(layer) };
      if (layer === -1) return { CLIP: clip };
      const message = `input "clip": the clip of host "${host.name}" cannot stop at layer ${layer}, only at its last.`;
      throw new LatentkitError("host.missing", message, { input: "clip" });
    },
  }),
  // Reads weights only; BREAK and TIMESTEP stay words, as in ComfyUI.
  defineNode({
    key: "CLIPTextEncode",
    displayName: "CLIP Text Encode (Prompt)",
    category: "conditioning",
    description: "Encodes a prompt; (x:1.2) gives x a weight of 1.2.",
    inputs: { text: prompt(), clip: clip() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ text, clip }, { log }) => ({ CONDITIONING: await encodePlain(clip, text, log) }),
  }),
  defineNode({
    key: "CLIPTextEncodeSDXL",
    displayName: "CLIP Text Encode SDXL",
    category: "advanced/conditioning",
    description: "Encodes a prompt for each of SDXL's encoders, with its size conditioning.",
    inputs: {
      clip: clip(),
      width: pixels(1024),
      height: pixels(1024),
      crop_w: pixels(0),
      crop_h: pixels(0),
      target_width: pixels(1024),
      target_height: pixels(1024),
      text_g: prompt(),
      text_l: prompt(),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ clip, text_g, text_l, ...sizes }, { log }) => ({
      CONDITIONING: withOptions(await encodeSides(clip, { g: text_g, l: text_l }, log), sizes),
    }),
  }),
  defineNode({
    key: "CLIPTextEncodeSDXLRefiner",
    displayName: "CLIP Text Encode SDXL Refiner",
    category: "advanced/conditioning",
    description: "Encodes a prompt for SDXL's refiner, with a size and an aesthetic score.",
    inputs: {
      ascore: float({ default: 6, min: 0, max: 1000, step: 0.01 }),
      width: pixels(1024),
      height: pixels(1024),
      text: prompt(),
      clip: clip(),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ ascore, width, height, text, clip }, { log }) => ({
      CONDITIONING: withOptions(await encodePlain(clip, text, log), { aesthetic_score: ascore, width, height }),
    }),
  }),
  defineNode({
    key: "CLIPTextEncodeFlux",
    category: "advanced/conditioning/flux",
    description: "Encodes a prompt for each of Flux's encoders, with the strength of its guidance.",
    inputs: {
      clip: textsClip(),
      clip_l: prompt(),
      t5xxl: prompt(),
      guidance: float({ default: 3.5, min: 0, max: 100, step: 0.1 }),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ clip, guidance, ...texts }, { host }) => ({
      CONDITIONING: withOptions(await encodeTexts(clip, texts, host), { guidance }),
    }),
  }),
  defineNode({
    key: "CLIPTextEncodeHiDream",
    category: "advanced/conditioning",
    description: "Encodes a prompt for each of HiDream's encoders.",
    inputs: { clip: textsClip(), clip_l: prompt(), clip_g: prompt(), t5xxl: prompt(), llama: prompt() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ clip, ...texts }, { host }) => ({ CONDITIONING: await encodeTexts(clip, texts, host) }),
  }),
  defineNode({
    key: "CLIPTextEncodeSD3",
    category: "advanced/conditioning",
    description: "Encodes a prompt for each of SD 3's encoders; an empty prompt can be left out.",
    inputs: {
      clip: textsClip(),
      clip_l: prompt(),
      clip_g: prompt(),
      t5xxl: prompt(),
      empty_padding: choice(["none", "empty_prompt"]),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ clip, empty_padding, ...texts }, { host }) => {
      const entries = Object.entries(texts).filter(([, text]) => text !== "" || empty_padding === "empty_prompt");
      return { CONDITIONING: await encodeTexts(clip, Object.fromEntries(entries), host) };
    },
  }),
  defineNode({
    key: "T5TokenizerOptions",
    category: "_for_testing/conditioning",
    description:
      "Sets the number of tokens to which T5 encoders pad a prompt; a clip without a T5 encoder stays unchanged.",
    inputs: { clip: clip(), min_padding: tokens(), min_length: tokens() },
    outputs: { CLIP: "CLIP" },
    run: ({ clip, ...options }) => ({ CLIP: clip.withT5Options?.(options) ?? clip }),
  }),
  defineNode({
    key: "TextEncodeQwenImageEdit",
    category: "advanced/conditioning",
    description: "Encodes a prompt for Qwen-Image-Edit, and the picture to edit.",
    inputs: { clip: textsClip(), prompt: prompt(), vae: vae({ optional: true }), image: image({ optional: true }) },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ image, ...inputs }, { host, log }) => {
      const pictures = image === undefined ? [] : [image];
      const how = { seenPixels: 1024 * 1024, unit: 1, before: () => "" };
      return { CONDITIONING: await encodeEdit({ ...inputs, pictures, ...how }, { host, log }) };
    },
  }),
  defineNode({
    key: "TextEncodeQwenImageEditPlus",
    category: "advanced/conditioning",
    description: "Encodes a prompt for Qwen-Image-Edit 2509, and up to three pictures to edit.",
    inputs: {
      clip: textsClip(),
      prompt: prompt(),
      vae: vae({ optional: true }),
      image1: image({ optional: true }),
      image2: image({ optional: true }),
      image3: image({ optional: true }),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ image1, image2, image3, ...inputs }, { host, log }) => {
      const pictures = [image1, image2, image3].filter((picture) => picture !== undefined);
      const how = { seenPixels: 384 * 384, unit: 8, before: (index: number) => `Picture ${index + 1}: ` };
      return { CONDITIONING: await encodeEdit({ ...inputs, pictures, ...how }, { host, log }) };
    },
  }),
] as const;

/** A picture in its own proportions with about so many pixels, its sides multiples of `unit`. */
function ofPixels(picture: Tensor, pixels: number, unit: number): Tensor {
  const colors = firstChannels(picture, 3);
  const [, rows, columns] = fourSides("Qwen prompt", colors, "[B, H, W, C]");
  const factor = Math.sqrt(pixels / (rows * columns));
  const side = (length: number): number => Math.max(1, roundHalfEven((length * factor) / unit)) * unit;
  return resizeImage(colors, { method: "area", height: side(rows), width: side(columns) });
}

interface EditPrompt {
  readonly clip: Clip;
  readonly prompt: string;
  readonly vae?: Vae;
  readonly pictures: readonly Tensor[];
  /** Pixels of a picture as the clip sees it. */
  readonly seenPixels: number;
  /** Multiple that the sides of reference latents' pictures are rounded to. */
  readonly unit: number;
  /** Text before the place of a picture. */
  readonly before: (index: number) => string;
}

/** Place of a picture in a text for Qwen2.5-VL. */
const PICTURE = "<|vision_start|><|image_pad|><|vision_end|>";

/** Encodes a prompt with pictures for Qwen-Image-Edit; if there is a vae, their latents are references too. */
async function encodeEdit(
  { clip, prompt, vae, pictures, seenPixels, unit, before }: EditPrompt,
  { host, log }: { readonly host: Host; readonly log: Warn },
): Promise<Conditioning> {
  const seen = pictures.map((picture) => ofPixels(picture, seenPixels, 1));
  const places = pictures.map((_, index) => before(index) + PICTURE).join("");
  const entries = await encodeTexts(clip, { qwen25_7b: places + prompt }, host, seen);
  if (vae === undefined || pictures.length === 0) return entries;
  const latents: Tensor[] = [];
  for (const picture of pictures) latents.push(await vae.encode(ofPixels(picture, 1024 * 1024, unit), log));
  return withReferences(entries, latents);
}
