import { AROUND, IN_DOUBLE, IN_SINGLE, OF_LINEAR1, SWAPPED, THIRDS } from "../flux-names.js";
import type { WeightMap } from "../stored.js";
import { type ModulePlaces, type NamedPlaces, ownPlaces, rowsOf, transformerNames, underscored } from "./places.js";
import { type Rows, thirdOf } from "./rows.js";

const BLOCK = /^(double|single)_blocks\.(\d+)\.(.+)$/;

/** Layers of a Flux transformer by the names of LoRA files. */
export const fluxPlaces = (weights: WeightMap): NamedPlaces =>
  [...ownPlaces(weights)].flatMap(([module, at]) =>
    [[module, at] as const, ...diffusersPlaces(module, at, weights)].map(
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
    ];
  if (kind === "double" && isKeyOf(THIRDS, layer))
    return THIRDS[layer].map((name, i) => part(name, thirdOf(rows, i as 0 | 1 | 2)));
  const names = kind === "single" ? IN_SINGLE : IN_DOUBLE;
  return isKeyOf(names, layer) ? [[`${block}.${names[layer]}`, at]] : [];
}

function aroundBlocks(module: string, at: ModulePlaces, rows: number): [string, ModulePlaces][] {
  // diffusers has the scale before the shift
  const swapped: Rows = [
    [rows / 2, rows],
    [0, rows / 2],
  ];
  if (module === SWAPPED.module) return [[SWAPPED.name, rowsOf(at, swapped)]];
  return isKeyOf(AROUND, module) ? [[AROUND[module], at]] : [];
}

const isKeyOf = <T extends object>(names: T, key: string): key is keyof T & string => Object.hasOwn(names, key);

/** Layers of a T5 encoder by the names of LoRA files: it is the third encoder of some trainers, the second of others. */
export const t5Places = (weights: WeightMap): NamedPlaces =>
  [...ownPlaces(weights)].map(([module, at]) => [
    [
      ...["lora_te3_", "lora_te2_", "lora_te_"].map((prefix) => prefix + underscored(module)),
      ...["text_encoder_2.", "text_encoder_3.", "text_encoders.t5xxl.transformer."].map((prefix) => prefix + module),
    ],
    at,
  ]);
