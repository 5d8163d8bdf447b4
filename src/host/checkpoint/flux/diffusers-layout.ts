import { BLOCK_TYPES, isBlockType, joinedRows, type StoredWeight, type WeightMap } from "../weights/stored.js";
import {
  AROUND,
  type DiffusersNames,
  IN_DOUBLE,
  IN_SINGLE,
  LINEAR1_OF_FLUX2,
  OF_LINEAR1,
  SWAPPED,
  THIRDS,
} from "./lora.js";

// A Flux transformer in the layout of diffusers, whose queries, keys and values are layers of their own.

const DOUBLE = ["double_blocks", "transformer_blocks"] as const;
const SINGLE = ["single_blocks", "single_transformer_blocks"] as const;
const BLOCK = /^(single_)?transformer_blocks\.(\d{1,4})\.(.+)\.(weight|bias)$/;
const OTHER = /^(.+)\.(weight|bias)$/;

/** Layers of Flux by those of diffusers: in a block of two streams, in one of the joint stream, and around the blocks. */
const OF_DOUBLE = inverse(IN_DOUBLE);
const OF_SINGLE = inverse({ ...IN_SINGLE, linear1: [LINEAR1_OF_FLUX2] });
const OF_AROUND = inverse(AROUND);
/** Layers of Flux that are several in diffusers. */
const JOINED: readonly (readonly [isSingle: boolean, layer: string, names: readonly string[]])[] = [
  ...Object.entries(THIRDS).map(([layer, names]) => [false, layer, names] as const),
  [true, "linear1", OF_LINEAR1],
];

/** Keys that only transformers in that layout have: Flux.1's, then Flux.2's. */
export const DIFFUSERS_MARKS = [
  "single_transformer_blocks.0.norm.linear.weight",
  `single_transformer_blocks.0.${LINEAR1_OF_FLUX2}.weight`,
] as const;

/** Makes the error of a weight that cannot take its place. */
export type Refuse = (weight: StoredWeight, expected: string) => Error;

// Kept apart or joined, the layers are one weight with parts, so builder, LoRAs and checks see one layout.
/**
 * The weights under the keys of Flux; those without a counterpart stay. Throws what `refuse` makes of one whose halves
 * have to change places and cannot, and of one whose place is taken.
 */
export function ownLayout(weights: WeightMap, refuse: Refuse): WeightMap {
  const all = new Map<string, StoredWeight>();
  const place = (key: string, weight: StoredWeight): void => {
    if (all.has(key)) throw refuse(weight, "in one layout with the others");
    all.set(key, weight);
  };
  for (const [key, weight] of weights) {
    const [, single, number, layer, kind] = BLOCK.exec(key) ?? [];
    const [, around = "", ending] = number === undefined ? (OTHER.exec(key) ?? []) : [];
    const block = single === undefined ? DOUBLE : SINGLE;
    const wholeOf = JOINED.find(([isSingle, , names]) => isSingle === (block === SINGLE) && names[0] === layer);
    const own = (single === undefined ? OF_DOUBLE : OF_SINGLE).get(layer ?? "");
    if (wholeOf !== undefined) {
      const [, whole, names] = wholeOf;
      const parts = names.flatMap((name) => weights.get(`${block[1]}.${number}.${name}.${kind}`) ?? []);
      place(`${block[0]}.${number}.${whole}.${kind}`, joinedRows(parts.length === names.length ? parts : [weight]));
    } else if (own !== undefined) place(`${block[0]}.${number}.${own}.${kind}`, weight);
    else if (around === SWAPPED.name) place(`${SWAPPED.module}.${ending}`, withSwappedHalves(weight, refuse));
    else if (OF_AROUND.has(around)) place(`${OF_AROUND.get(around)}.${ending}`, weight);
    else if (!isPartOfWhole(layer, single !== undefined)) place(key, weight);
  }
  return all;
}

/** Key in that layout, of the first part of a whole; Flux.2 has some names of its own. */
export function diffusersKey(key: string, isFlux2: boolean): string {
  const [, kind, number, layer = "", ending] = /^(double|single)_blocks\.(\d+)\.(.+)\.(\w+)$/.exec(key) ?? [];
  const [, around = "", last] = kind === undefined ? (OTHER.exec(key) ?? []) : [];
  if (around === SWAPPED.module) return `${SWAPPED.name}.${last}`;
  const names: DiffusersNames = kind === undefined ? AROUND : kind === "single" ? IN_SINGLE : IN_DOUBLE;
  const whole = JOINED.find(([isSingle, own]) => isSingle === (kind === "single") && own === layer)?.[2][0];
  const [first, second] = names[kind === undefined ? around : layer] ?? [];
  const name = isFlux2 ? (layer === "linear1" ? LINEAR1_OF_FLUX2 : (whole ?? second ?? first)) : (whole ?? first);
  if (name === undefined) return key;
  if (kind === undefined) return `${name}.${last}`;
  return `${(kind === "single" ? SINGLE : DOUBLE)[1]}.${number}.${name}.${ending === "scale" ? "weight" : ending}`;
}

const isPartOfWhole = (layer: string | undefined, inSingle: boolean): boolean =>
  JOINED.some(([isSingle, , names]) => isSingle === inSingle && layer !== undefined && names.includes(layer));

/** The weight with its second half of rows first. */
function withSwappedHalves(weight: StoredWeight, refuse: Refuse): StoredWeight {
  const { shape, from, to, dtype, factor, packing } = weight;
  const [rows = 0, ...others] = shape;
  const values = others.reduce((product, side) => product * side, rows / 2);
  const unit = isBlockType(dtype) ? BLOCK_TYPES[dtype].values : 1;
  const hasOneFactor = factor === undefined || factor.shape.every((side) => side === 1);
  if (rows % 2 !== 0 || values % unit !== 0 || !hasOneFactor || packing !== undefined)
    throw refuse(weight, "of two halves, each of whole rows");
  const half = { ...weight, shape: [rows / 2, ...others] };
  const middle = (from + to) / 2;
  return {
    ...weight,
    parts: [
      { ...half, from: middle },
      { ...half, to: middle },
    ],
  };
}

function inverse(names: DiffusersNames): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).flatMap(([own, all]) => all.map((name) => [name!, own] as const)));
}
