import { levelsOfLdm, renaming, unetModules } from "../weights/diffusers-names.js";
import type { WeightMap } from "../weights/stored.js";
import { fluxPlaces, t5Places } from "./flux-names.js";
import {
  addPlace,
  type ModulePlaces,
  type NamedPlaces,
  ownPlaces,
  type Place,
  thirdOf,
  transformerNames,
  underscored,
} from "./places.js";

/** A network that LoRA files change: its weights, and for a text encoder which one it is and how its keys are called. */
export type LoraTarget =
  | { readonly kind: "unet" | "z-image" | "flux" | "t5"; readonly weights: WeightMap }
  | { readonly kind: "text"; readonly config: TextTarget; readonly weights: WeightMap };

interface TextTarget {
  readonly name: "l" | "h" | "g";
  readonly layout: "hf" | "openclip";
}

/** Places of a network's layers by every name that a LoRA file may have for them. */
export function placesByName(target: LoraTarget): ReadonlyMap<string, ModulePlaces> {
  const places = new Map<string, ModulePlaces>();
  for (const [names, at] of namedPlaces(target)) for (const name of names) places.set(name, at);
  return places;
}

function namedPlaces(target: LoraTarget): NamedPlaces {
  switch (target.kind) {
    case "unet": {
      const toDiffusers = renaming(unetModules(levelsOfLdm(target.weights.keys())), 0);
      return [...ownPlaces(target.weights)].map(([module, at]) => [unetNames(module, toDiffusers(module)), at]);
    }
    case "z-image":
      return [...zImagePlaces(target.weights)].map(([module, at]) => [transformerNames(module), at]);
    case "flux":
      return fluxPlaces(target.weights);
    case "t5":
      return t5Places(target.weights);
    case "text": {
      const { config, weights } = target;
      const modules = config.layout === "hf" ? ownPlaces(weights) : openClipPlaces(weights);
      return [...modules].map(([module, at]) => [textNames(module, config.name), at]);
    }
  }
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

/** Layers of a Z-Image transformer by their own names, and where these differ by those of diffusers. */
function zImagePlaces(weights: WeightMap): Map<string, ModulePlaces> {
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
  return modules;
}

const Z_IMAGE_RENAMES = [
  ["x_embedder", "all_x_embedder.2-1"],
  ["final_layer.", "all_final_layer.2-1."],
] as const;

const KOHYA_TEXT = { l: ["lora_te_", "lora_te1_"], h: ["lora_te_"], g: ["lora_te2_"] } as const;
const DIFFUSERS_TEXT = { l: "text_encoder.", h: "text_encoder.", g: "text_encoder_2." } as const;

/** Names of a text encoder's layer, `module` being its name in the HF layout. */
function textNames(module: string, encoder: TextTarget["name"]): string[] {
  const name = module === PROJECTION ? module : `text_model.${module}`;
  const names = [
    ...KOHYA_TEXT[encoder].map((prefix) => prefix + underscored(name)),
    DIFFUSERS_TEXT[encoder] + name,
    `text_encoders.clip_${encoder}.transformer.${name}`,
  ];
  // these do not tell the encoder: they mean the first
  if (encoder !== "g") names.push(`lycoris_${underscored(name)}`, `text_encoders.${name}`, `text_encoders.${module}`);
  return names;
}

const PROJECTION = "text_projection";

/** HF names of what OpenCLIP has outside of its blocks. */
const AROUND_BLOCKS: Readonly<Record<string, readonly [module: string, kind: "weight" | "bias"]>> = {
  "token_embedding.weight": ["embeddings.token_embedding", "weight"],
  positional_embedding: ["embeddings.position_embedding", "weight"],
  "ln_final.weight": ["final_layer_norm", "weight"],
  "ln_final.bias": ["final_layer_norm", "bias"],
};

/** HF names of the layers in a block of OpenCLIP. */
const IN_BLOCK: Readonly<Record<string, string>> = {
  ln_1: "layer_norm1",
  ln_2: "layer_norm2",
  "attn.out_proj": "self_attn.out_proj",
  "mlp.c_fc": "mlp.fc1",
  "mlp.c_proj": "mlp.fc2",
};

const THIRDS = ["q_proj", "k_proj", "v_proj"] as const;
const BLOCKS = "transformer.resblocks.";

/** Layers of an OpenCLIP encoder by their names in the HF layout. */
function openClipPlaces(weights: WeightMap): Map<string, ModulePlaces> {
  const modules = new Map<string, ModulePlaces>();
  for (const key of weights.keys()) {
    if (key === PROJECTION) addPlace(modules, PROJECTION, "weight", { key, transposed: true });
    else if (Object.hasOwn(AROUND_BLOCKS, key)) addPlace(modules, ...AROUND_BLOCKS[key]!, { key });
    else if (key.startsWith(BLOCKS)) addBlockPlaces(modules, weights, key);
  }
  return modules;
}

function addBlockPlaces(modules: Map<string, ModulePlaces>, weights: WeightMap, key: string): void {
  const dot = key.indexOf(".", BLOCKS.length);
  const layer = `encoder.layers.${key.slice(BLOCKS.length, dot)}`;
  const name = key.slice(dot + 1);
  for (const kind of ["weight", "bias"] as const) {
    if (name === `attn.in_proj_${kind}`)
      for (const [third, projection] of THIRDS.entries())
        addPlace(modules, `${layer}.self_attn.${projection}`, kind, thirdPlace(weights, key, third));
    const inBlock = name.endsWith(`.${kind}`) ? name.slice(0, -kind.length - 1) : "";
    if (Object.hasOwn(IN_BLOCK, inBlock)) addPlace(modules, `${layer}.${IN_BLOCK[inBlock]}`, kind, { key });
  }
}

/** Place of one of three layers that are one weight. */
const thirdPlace = (weights: WeightMap, key: string, third: number): Place => ({
  key,
  rows: thirdOf(weights.get(key)!.shape[0]!, third as 0 | 1 | 2),
});
