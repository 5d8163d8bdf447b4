import { type NamedPlaces, ownPlaces, thirdPlace, transformerNames } from "../lora/places.js";
import { joinedRows, type StoredWeight, type WeightMap } from "../weights/stored.js";

/** Layers of the original code that diffusers calls otherwise, by the beginnings of their names or, inside, of a part. */
const AROUND = [
  ["x_embedder.", "all_x_embedder.2-1."],
  ["final_layer.", "all_final_layer.2-1."],
] as const;
const IN_BLOCK = [
  [".attention.out.", ".attention.to_out.0."],
  [".attention.q_norm.", ".attention.norm_q."],
  [".attention.k_norm.", ".attention.norm_k."],
] as const;
/** The whole that diffusers has in three. */
const WHOLE = ".attention.qkv.";
const THIRDS = ["to_q", "to_k", "to_v"] as const;
const THIRD = /^(.+\.attention\.)to_([qkv])\.weight$/;

// Kept apart or joined, the thirds are one weight with parts, so builder, LoRAs and checks see one layout.
/** The weights under the keys of the original code; those without a counterpart, or beside it, keep theirs. */
export function originalLayout(weights: WeightMap): WeightMap {
  const all = new Map<string, StoredWeight>();
  for (const [key, weight] of weights) {
    const [, block = "", third] = THIRD.exec(key) ?? [];
    const whole = `${block}qkv.weight`;
    if (third === undefined || weights.has(whole)) {
      const own = originalKey(key);
      all.set(weights.has(own) ? key : own, weight);
    } else if (third === "q") {
      const parts = THIRDS.flatMap((name) => weights.get(`${block}${name}.weight`) ?? []);
      all.set(whole, joinedRows(parts.length === THIRDS.length ? parts : [weight]));
    } else if (!weights.has(`${block}to_q.weight`)) all.set(key, weight);
  }
  return all;
}

function originalKey(key: string): string {
  for (const [own, diffusers] of AROUND) if (key.startsWith(diffusers)) return own + key.slice(diffusers.length);
  return IN_BLOCK.reduce((name, [own, diffusers]) => name.replace(diffusers, own), key);
}

/** A key of the original code in the layout of diffusers, of the first part of a whole. */
export function diffusersKey(key: string): string {
  for (const [own, diffusers] of AROUND) if (key.startsWith(own)) return diffusers + key.slice(own.length);
  const renames = [...IN_BLOCK, [WHOLE, ".attention.to_q."] as const];
  return renames.reduce((name, [own, diffusers]) => name.replace(own, diffusers), key);
}

/** Layers of a Z-Image transformer by the names of LoRA files: their own, and those of diffusers if they differ. @internal */
export function zImagePlaces(weights: WeightMap): NamedPlaces {
  const modules = ownPlaces(weights);
  for (const [module, places] of [...modules]) {
    const name = `${module}.`;
    if (name.endsWith(WHOLE)) {
      const at = name.slice(0, -"qkv.".length);
      for (const [third, part] of THIRDS.entries())
        modules.set(at + part, { weight: thirdPlace(weights, places.weight!.key, third) });
    } else modules.set(diffusersKey(name).slice(0, -1), places);
  }
  return [...modules].map(([module, at]) => [transformerNames(module), at]);
}
