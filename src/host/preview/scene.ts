import { createGenerator } from "../../tensor/random.js";
import type { Tensor } from "../../tensor/tensor.js";
import { type Colour, type FoundWord, foundWord, isEmpty, type Part, wordsOf } from "./words.js";

/** Contents of a landscape, besides sky, light, hills and ground. */
export interface Contents {
  readonly water: boolean;
  readonly trees: boolean;
  readonly stars: boolean;
  readonly animal: boolean;
}

/** Colours of a landscape, in the order in which it is drawn. */
export const PIGMENTS = [
  "skyTop",
  "skyLow",
  "cloud",
  "star",
  "glow",
  "light",
  "far",
  "near",
  "water",
  "field",
  "meadow",
  "bank",
  "tree",
  "animal",
  "white",
] as const satisfies readonly string[];
export type Pigment = (typeof PIGMENTS)[number];
export type Palette = Readonly<Record<Pigment, Colour>>;

/** The picture that a prompt describes. */
export interface Scene {
  /** Absent: all of it is of one colour. */
  readonly contents?: Contents;
  readonly palette: Palette;
  /** Spread of its latents: 1, and more for a prompt that says little. */
  readonly spread: number;
}

const WHITE: Colour = [1, 1, 1];
const BLACK: Colour = [0, 0, 0];
/** Colour of things against the light. */
const INK: Colour = [0.09, 0.1, 0.16];
const DEEP: Colour = [0.08, 0.1, 0.3];

const DAY = { sky: [0.5, 0.68, 0.88], light: [1, 0.88, 0.6], ground: [0.32, 0.48, 0.24] } as const;
const NIGHT = { sky: [0.07, 0.09, 0.22], light: [0.93, 0.92, 0.82], ground: [0.1, 0.14, 0.18] } as const;
const WATER: Colour = [0.2, 0.45, 0.6];
const TREES: Colour = [0.13, 0.32, 0.18];
const ANIMAL: Colour = [0.5, 0.38, 0.3];

/** Words of a sky that the low sun colours. */
const LOW_SUN: ReadonlySet<string> = new Set(["dawn", "sunrise", "sunset", "dusk", "evening"]);
const OF_NIGHT: ReadonlySet<string> = new Set(["night", "midnight", "star", "stars"]);
/** Tokens from an adjective to its noun at most: "a red, old fox". */
const REACH = 3;

/** Landscapes of prompts without a known word. */
const COMMON = [
  ["dawn", "lake", "mountain"],
  ["sunset", "sea"],
  ["forest", "hills", "sky"],
  ["meadow", "hills", "clouds"],
  ["night", "moon", "lake", "trees"],
  ["winter", "mountain", "pines", "snow"],
];
/** Difference from grey that the values of a neutral prompt make at most. */
const TINT = 0.05;
/** Spread of a neutral prompt, so that guidance away from it does not run out of all colours. */
const VAGUE = 2.5;
const SEED = 0x70726576;

/**
 * Scene of a conditioning [1, tokens, dim]: of its words, or a common one if none is known. A text without words,
 * or one that names flaws, has none: guidance leads away from such a text.
 */
export function sceneOf({ data, shape }: Tensor): Scene {
  const dim = shape.at(-1) ?? 0;
  const known = wordsOf(data, dim);
  if (isEmpty(data, dim) || known.some(({ part }) => part === "flaw")) return neutral(data);
  const words = known.length > 0 ? known : COMMON[codeOf(data) % COMMON.length]!.map(foundWord);
  const { things, loose } = bound(words);
  const names = new Set(words.map(({ word }) => word));
  const isNight = things.has("moon") || [...OF_NIGHT].some((word) => names.has(word));
  const isLow = [...LOW_SUN].some((word) => names.has(word));
  const usual = isNight ? NIGHT : DAY;
  const sky =
    things.get("sky") ?? (isNight ? NIGHT.sky : things.get("time")) ?? (loose.length > 1 ? loose.at(-1)! : usual.sky);
  const light = things.get("sun") ?? things.get("moon") ?? loose[0] ?? usual.light;
  const ground = things.get("ground") ?? things.get("trees") ?? (loose.length > 2 ? loose[1]! : usual.ground);
  const hills = things.get("hills") ?? mixed(ground, sky, isNight ? 0.5 : 0.3);
  const dusky = (colour: Colour): Colour => (isNight ? mixed(colour, INK, 0.35) : colour);
  const contents = {
    water: things.has("water"),
    trees: things.has("trees"),
    stars: isNight,
    animal: things.has("animal"),
  };
  const palette: Palette = {
    skyTop: mixed(sky, isNight ? BLACK : DEEP, isNight ? 0.25 : 0.3),
    skyLow: mixed(sky, light, isLow ? 0.62 : isNight ? 0.14 : 0.34),
    cloud: mixed(sky, isLow ? mixed(light, WHITE, 0.3) : WHITE, isNight ? 0.12 : 0.55),
    star: [1, 0.99, 0.92],
    glow: mixed(light, WHITE, 0.2),
    light,
    far: dusky(mixed(mixed(hills, sky, 0.5), light, isLow ? 0.3 : 0.12)),
    near: dusky(mixed(hills, sky, 0.18)),
    water: dusky(things.get("water") ?? WATER),
    field: dusky(mixed(ground, sky, 0.22)),
    meadow: dusky(mixed(ground, BLACK, 0.3)),
    bank: mixed(ground, INK, isNight || isLow ? 0.78 : 0.55),
    tree: mixed(things.get("trees") ?? TREES, INK, isNight || isLow ? 0.72 : 0.5),
    animal: mixed(things.get("animal") ?? ANIMAL, INK, isNight ? 0.35 : 0),
    white: dusky([0.96, 0.94, 0.9]),
  };
  return { contents, palette, spread: 1 };
}

/** One colour near grey, which follows from the values of a conditioning. */
function neutral(data: Float32Array): Scene {
  const { data: normals } = createGenerator({ seed: SEED + codeOf(data) }).randn([3]);
  const near = (normal: number): number => 0.5 + TINT * Math.min(1, Math.max(-1, normal));
  const colour: Colour = [near(normals[0]!), near(normals[1]!), near(normals[2]!)];
  const palette = Object.fromEntries(PIGMENTS.map((name) => [name, colour])) as unknown as Palette;
  return { palette, spread: VAGUE };
}

/** A number below 2^16 that follows from the values of a conditioning. */
function codeOf(data: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += data[i]! * ((i % 13) - 6);
  return Number.isFinite(sum) ? Math.abs(Math.trunc(sum * 64)) % 0x10000 : 0;
}

/** Colours by part of the picture; those of no part that is known are loose. */
function bound(words: readonly FoundWord[]): { things: ReadonlyMap<Part, Colour>; loose: readonly Colour[] } {
  const things = new Map<Part, Colour>();
  const loose: Colour[] = [];
  let waiting: FoundWord | undefined;
  for (const word of words) {
    const { part, colour, token } = word;
    const isBound = part !== undefined && waiting !== undefined && token - waiting.token <= REACH;
    if (waiting !== undefined && !isBound) loose.push(waiting.colour);
    if (part !== undefined && (isBound || !things.has(part))) things.set(part, isBound ? waiting!.colour : colour);
    waiting = part === undefined ? word : undefined;
  }
  if (waiting !== undefined) loose.push(waiting.colour);
  return { things, loose };
}

/** Part of the way from one colour to another. */
const mixed = (from: Colour, to: Colour, share: number): Colour => [
  from[0] + (to[0] - from[0]) * share,
  from[1] + (to[1] - from[1]) * share,
  from[2] + (to[2] - from[2]) * share,
];
