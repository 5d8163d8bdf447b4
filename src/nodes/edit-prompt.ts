import type { Clip, Conditioning, Host, Vae, Warn } from "../host/types.js";
import { firstChannels } from "../tensor/channels.js";
import { resizeImage } from "../tensor/resize.js";
import { roundHalfEven } from "../tensor/rounding.js";
import { fourSides } from "../tensor/shape.js";
import type { Tensor } from "../tensor/tensor.js";
import { encodeTexts } from "./clips.js";
import { withReferences } from "./conditioning.js";

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
}

/** Encodes a prompt with pictures for Qwen-Image-Edit; where there is a vae, their latents are references too. */
export async function encodeEdit(
  { clip, prompt, vae, pictures, seenPixels, unit }: EditPrompt,
  { host, log }: { readonly host: Host; readonly log: Warn },
): Promise<Conditioning> {
  const seen = pictures.map((picture) => ofPixels(picture, seenPixels, 1));
  const entries = await encodeTexts(clip, { qwen25_7b: prompt }, host, seen);
  if (vae === undefined || pictures.length === 0) return entries;
  const latents: Tensor[] = [];
  for (const picture of pictures) latents.push(await vae.encode(ofPixels(picture, 1024 * 1024, unit), log));
  return withReferences(entries, latents);
}
