import {
  addPlace,
  type LoraTarget,
  type ModulePlaces,
  type NamedPlaces,
  ownPlaces,
  thirdPlace,
  underscored,
} from "../lora/places.js";
import type { WeightMap } from "../weights/stored.js";
import type { TextEncoderConfig } from "./build.js";

/** Layers of a T5 encoder by the names of LoRA files: it is the third encoder of some trainers, the second of others. */
export const t5Places = (weights: WeightMap): NamedPlaces =>
  [...ownPlaces(weights)].map(([module, at]) => [
    [
      ...["lora_te3_", "lora_te2_", "lora_te_"].map((prefix) => prefix + underscored(module)),
      ...["text_encoder_2.", "text_encoder_3.", "text_encoders.t5xxl.transformer."].map((prefix) => prefix + module),
    ],
    at,
  ]);

/** Makes the layers of an encoder of CLIP's by the names of LoRA files. */
export const clipPlaces =
  ({ name, layout }: Pick<TextEncoderConfig, "name" | "layout">): LoraTarget["places"] =>
  (weights) => {
    const modules = layout === "hf" ? ownPlaces(weights) : openClipPlaces(weights);
    return [...modules].map(([module, at]) => [textNames(module, name), at]);
  };

const KOHYA_TEXT = { l: ["lora_te_", "lora_te1_"], h: ["lora_te_"], g: ["lora_te2_"] } as const;
const DIFFUSERS_TEXT = { l: "text_encoder.", h: "text_encoder.", g: "text_encoder_2." } as const;

/** Names of a text encoder's layer, `module` being its name in the HF layout. */
function textNames(module: string, encoder: TextEncoderConfig["name"]): string[] {
  const name = module === PROJECTION ? module : `text_model.${module}`;
  const names = [
    ...KOHYA_TEXT[encoder].map((prefix) => prefix + underscored(name)),
    DIFFUSERS_TEXT[encoder] + name,
    `text_encoders.clip_${encoder}.transformer.${name}`,
  ];
  // these do not name the encoder: they mean the first
  if (encoder !== "g") names.push(`lycoris_${underscored(name)}`, `text_encoders.${name}`, `text_encoders.${module}`);
  return names;
}

const PROJECTION = "text_projection";

/** HF names of OpenCLIP's layers outside its blocks. */
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
