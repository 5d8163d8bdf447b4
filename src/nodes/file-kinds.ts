import { describe } from "../base/errors.js";
import type { HostFiles } from "../host/types.js";
import type { ChoiceContext, FileKind } from "./inputs.js";

/** Kinds of files in the words of a message. */
export const PLURALS: Readonly<Record<keyof HostFiles, string>> = {
  loras: "LoRAs",
  vae: "separate VAEs",
  controlnet: "ControlNets",
  upscale_models: "upscale models",
  clip_vision: "CLIP vision models",
  style_models: "style models",
  gligen: "GLIGEN models",
  hypernetworks: "hypernetworks",
  diffusion_models: "separate diffusion models",
  text_encoders: "separate text encoders",
  model_patches: "model patches",
};

/** Sentence on a host that has no files of a kind, for a graph that names one; undefined where it has some. */
export function lackOf(host: NonNullable<ChoiceContext["host"]>, kind: FileKind): string | undefined {
  if (kind === "checkpoints" || host.files?.(kind) !== undefined) return undefined;
  return `${hostName(host)} has no ${PLURALS[kind]}`;
}

/** A host in a message. */
export const hostName = (host: { readonly name?: string }): string => `host ${describe(host.name)}`;
