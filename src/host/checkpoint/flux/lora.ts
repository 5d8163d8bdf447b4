import {
  type ModulePlaces,
  type NamedPlaces,
  ownPlaces,
  type Rows,
  rowsOf,
  thirdOf,
  transformerNames,
} from "../lora/places.js";
import type { WeightMap } from "../weights/stored.js";

const BLOCK = /^(double|single)_blocks\.(\d+)\.(.+)$/;

/** Layers of a Flux transformer by the names of LoRA files. */
export const fluxPlaces = (weights: WeightMap): NamedPlaces =>
  [...ownPlaces(weights)].flatMap(([module, at]) =>
    [[module, at] as const, ...diffusersPlaces(module, at, weights), ...xlabsPlaces(module, at, weights)].map(
      ([name, places]) => [transformerNames(name), places] as const,
    ),
  );

/** A layer under its names in diffusers, of which it may have several. */
function diffusersPlaces(module: string, at: ModulePlaces, weights: WeightMap): [string, ModulePlaces][] {
  const [, kind, number, layer] = BLOCK.exec(module) ?? [];
  const shape = weights.get(at.weight?.key ?? "")?.shape ?? [];
  const [rows = 0, width = 0] = shape;
  if (layer === undefined) return aroundBlocks(module, at, rows);
  const block = `${kind === "single" ? "single_transformer_blocks" : "transformer_blocks"}.${number}`;
  const part = (name: string, range: Rows): [string, ModulePlaces] => [`${block}.${name}`, rowsOf(at, range)];
  if (kind === "single" && layer === "linear1")
    return [
      ...OF_LINEAR1.slice(0, 3).map((name, i) => part(name, [[i * width, (i + 1) * width]])),
      part(OF_LINEAR1[3], [[3 * width, rows]]),
      [`${block}.${LINEAR1_OF_FLUX2}`, at],
    ];
  if (kind === "double" && isKeyOf(THIRDS, layer))
    return THIRDS[layer].map((name, i) => part(name, thirdOf(rows, i as 0 | 1 | 2)));
  return namesOf(kind === "single" ? IN_SINGLE : IN_DOUBLE, layer).map((name) => [`${block}.${name}`, at]);
}

/** Layers of attention in XLabs' files: 1 is the stream of the picture, 2 that of the text. */
const OF_XLABS: Readonly<Record<string, string>> = {
  "img_attn.qkv": "qkv1",
  "txt_attn.qkv": "qkv2",
  "img_attn.proj": "proj1",
  "txt_attn.proj": "proj2",
  linear1: "qkv",
  linear2: "proj",
};

function xlabsPlaces(module: string, at: ModulePlaces, weights: WeightMap): [string, ModulePlaces][] {
  const [, kind, number, layer = ""] = BLOCK.exec(module) ?? [];
  if (!isKeyOf(OF_XLABS, layer)) return [];
  const [, width = 0] = weights.get(at.weight?.key ?? "")?.shape ?? [];
  const places = layer === "linear1" ? rowsOf(at, [[0, 3 * width]]) : at;
  return [[`${kind}_blocks.${number}.processor.${OF_XLABS[layer]}`, places]];
}

function aroundBlocks(module: string, at: ModulePlaces, rows: number): [string, ModulePlaces][] {
  // diffusers has the scale before the shift
  const swapped: Rows = [
    [rows / 2, rows],
    [0, rows / 2],
  ];
  if (module === SWAPPED.module) return [[SWAPPED.name, rowsOf(at, swapped)]];
  return namesOf(AROUND, module).map((name) => [name, at]);
}

const namesOf = (names: DiffusersNames, layer: string): readonly string[] =>
  Object.hasOwn(names, layer) ? (names[layer] as readonly string[]) : [];

const isKeyOf = <T extends object>(names: T, key: string): key is keyof T & string => Object.hasOwn(names, key);

/**
 * Layers of diffusers by those of Flux: in a block of two streams, in one of the joint stream, and around the blocks. A
 * second name is that of Flux.2, if it has another.
 */
export const IN_DOUBLE = {
  "img_attn.proj": ["attn.to_out.0"],
  "txt_attn.proj": ["attn.to_add_out"],
  "img_mlp.0": ["ff.net.0.proj", "ff.linear_in"],
  "img_mlp.2": ["ff.net.2", "ff.linear_out"],
  "txt_mlp.0": ["ff_context.net.0.proj", "ff_context.linear_in"],
  "txt_mlp.2": ["ff_context.net.2", "ff_context.linear_out"],
  "img_mod.lin": ["norm1.linear"],
  "txt_mod.lin": ["norm1_context.linear"],
  "img_attn.norm.query_norm": ["attn.norm_q"],
  "img_attn.norm.key_norm": ["attn.norm_k"],
  "txt_attn.norm.query_norm": ["attn.norm_added_q"],
  "txt_attn.norm.key_norm": ["attn.norm_added_k"],
} as const satisfies DiffusersNames;
export const IN_SINGLE = {
  linear2: ["proj_out", "attn.to_out"],
  "modulation.lin": ["norm.linear"],
  "norm.query_norm": ["attn.norm_q"],
  "norm.key_norm": ["attn.norm_k"],
} as const satisfies DiffusersNames;
export const AROUND = {
  img_in: ["x_embedder"],
  txt_in: ["context_embedder"],
  "final_layer.linear": ["proj_out"],
  "time_in.in_layer": ["time_text_embed.timestep_embedder.linear_1", "time_guidance_embed.timestep_embedder.linear_1"],
  "time_in.out_layer": ["time_text_embed.timestep_embedder.linear_2", "time_guidance_embed.timestep_embedder.linear_2"],
  "vector_in.in_layer": ["time_text_embed.text_embedder.linear_1"],
  "vector_in.out_layer": ["time_text_embed.text_embedder.linear_2"],
  "guidance_in.in_layer": [
    "time_text_embed.guidance_embedder.linear_1",
    "time_guidance_embed.guidance_embedder.linear_1",
  ],
  "guidance_in.out_layer": [
    "time_text_embed.guidance_embedder.linear_2",
    "time_guidance_embed.guidance_embedder.linear_2",
  ],
  "double_stream_modulation_img.lin": ["double_stream_modulation_img.linear"],
  "double_stream_modulation_txt.lin": ["double_stream_modulation_txt.linear"],
  "single_stream_modulation.lin": ["single_stream_modulation.linear"],
} as const satisfies DiffusersNames;
/** Layers of diffusers that follow each other in one of Flux. */
export const THIRDS = {
  "img_attn.qkv": ["attn.to_q", "attn.to_k", "attn.to_v"],
  "txt_attn.qkv": ["attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"],
} as const;
export const OF_LINEAR1 = ["attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"] as const;
/** The same layer in Flux.2, which is one. */
export const LINEAR1_OF_FLUX2 = "attn.to_qkv_mlp_proj";
/** Layer whose scale stands before its shift in diffusers. */
export const SWAPPED = { module: "final_layer.adaLN_modulation.1", name: "norm_out.linear" } as const;

/** Names in diffusers by those of Flux. */
export type DiffusersNames = Readonly<Record<string, readonly [string, string?]>>;
