import { type NamedPlaces, ownPlaces, thirdPlace, transformerNames } from "../lora/places.js";
import type { WeightMap } from "../weights/stored.js";

/** Layers of a Z-Image transformer by the names of LoRA files: their own, and those of diffusers if they differ. */
export function zImagePlaces(weights: WeightMap): NamedPlaces {
  const modules = ownPlaces(weights);
  for (const [module, { weight }] of [...modules]) {
    const at = module.slice(0, module.lastIndexOf(".") + 1);
    const name = module.slice(at.length);
    if (name === "qkv")
      for (const [third, part] of ["to_q", "to_k", "to_v"].entries())
        modules.set(at + part, { weight: thirdPlace(weights, weight!.key, third) });
    if (name === "out") modules.set(`${at}to_out.0`, { weight });
    for (const [own, diffusers] of Z_IMAGE_RENAMES)
      if (module.startsWith(own)) modules.set(diffusers + module.slice(own.length), modules.get(module)!);
  }
  return [...modules].map(([module, at]) => [transformerNames(module), at]);
}

const Z_IMAGE_RENAMES = [
  ["x_embedder", "all_x_embedder.2-1"],
  ["final_layer.", "all_final_layer.2-1."],
] as const;
