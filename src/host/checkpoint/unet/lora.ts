import { type NamedPlaces, ownPlaces, underscored } from "../lora/places.js";
import { levelsOfLdm, renaming, unetModules } from "../weights/diffusers-names.js";
import type { WeightMap } from "../weights/stored.js";

/** Layers of a UNet by the names of LoRA files. */
export function unetPlaces(weights: WeightMap): NamedPlaces {
  const toDiffusers = renaming(unetModules(levelsOfLdm(weights.keys())), 0);
  return [...ownPlaces(weights)].map(([module, at]) => [unetNames(module, toDiffusers(module)), at]);
}

/** Names of a UNet's layer. The styles, in this order: kohya, LyCORIS, diffusers, PEFT, plain LDM. */
function unetNames(ldm: string, diffusers: string | undefined): string[] {
  const names = [
    `lora_unet_${underscored(ldm)}`,
    `lycoris_${underscored(ldm)}`,
    `diffusion_model.${ldm}`,
    `model.diffusion_model.${ldm}`,
  ];
  if (diffusers === undefined) return names;
  names.push(`lora_unet_${underscored(diffusers)}`, `lycoris_${underscored(diffusers)}`);
  for (const name of [diffusers, processorName(diffusers)])
    if (name !== undefined) names.push(name, `unet.${name}`, `base_model.model.${name}`);
  return names;
}

const ATTENTIONS = ["attn1", "attn2"];
const PROJECTIONS = ["to_q", "to_k", "to_v", "to_out"];

/** Name of an attention's layer in diffusers before PEFT: `attn1.processor.to_out` for `attn1.to_out.0`. */
function processorName(diffusers: string): string | undefined {
  const parts = diffusers.split(".");
  if (parts.at(-1) === "0") parts.pop();
  const layer = parts.pop() ?? "";
  if (!PROJECTIONS.includes(layer) || !ATTENTIONS.includes(parts.at(-1) ?? "")) return undefined;
  return [...parts, "processor", layer].join(".");
}
