import { endRow, wordRow } from "./clip.js";

/** Red, green and blue in 0 … 1. */
export type Colour = readonly [red: number, green: number, blue: number];

/** Meaning of a word in a picture: "time" colours the whole sky, a "flaw" is an unwanted quality. */
export type Part = "sky" | "time" | "sun" | "moon" | "water" | "hills" | "trees" | "ground" | "animal" | "flaw";

/** A word that the preview model knows: a colour, or a thing with a colour of its own. */
export interface Word {
  readonly colour: Colour;
  readonly part?: Part;
}

/** A word of a prompt, and the number of its token. */
export interface FoundWord extends Word {
  readonly word: string;
  readonly token: number;
}

const COLOURS: Readonly<Record<string, Colour>> = {
  red: [0.8, 0.12, 0.1],
  orange: [0.93, 0.52, 0.13],
  yellow: [0.95, 0.85, 0.3],
  gold: [0.83, 0.66, 0.2],
  golden: [0.9, 0.7, 0.25],
  green: [0.2, 0.55, 0.22],
  teal: [0.1, 0.5, 0.5],
  turquoise: [0.2, 0.72, 0.7],
  cyan: [0.2, 0.8, 0.85],
  blue: [0.15, 0.32, 0.75],
  purple: [0.45, 0.2, 0.6],
  violet: [0.5, 0.3, 0.75],
  pink: [0.93, 0.55, 0.68],
  brown: [0.42, 0.27, 0.15],
  beige: [0.86, 0.79, 0.65],
  white: [0.95, 0.95, 0.95],
  silver: [0.72, 0.74, 0.77],
  grey: [0.5, 0.5, 0.5],
  gray: [0.5, 0.5, 0.5],
  black: [0.06, 0.06, 0.07],
  fire: [0.92, 0.36, 0.08],
  rose: [0.82, 0.16, 0.3],
};

const GREY: Colour = [0.5, 0.5, 0.5];
const FLAWS = ["ugly", "blurry", "worst", "lowres", "watermark", "deformed", "jpeg", "bad", "low"];

const THINGS: Readonly<Record<Part, Readonly<Record<string, Colour>>>> = {
  sky: { sky: [0.45, 0.66, 0.9], clouds: [0.55, 0.68, 0.85], heaven: [0.45, 0.66, 0.9] },
  time: {
    dawn: [0.52, 0.5, 0.74],
    sunrise: [0.56, 0.54, 0.76],
    sunset: [0.5, 0.36, 0.62],
    dusk: [0.36, 0.32, 0.56],
    evening: [0.4, 0.38, 0.62],
    night: [0.07, 0.09, 0.22],
    midnight: [0.04, 0.06, 0.16],
    star: [0.07, 0.09, 0.22],
    stars: [0.07, 0.09, 0.22],
    winter: [0.68, 0.76, 0.86],
    autumn: [0.62, 0.68, 0.78],
  },
  sun: { sun: [1, 0.84, 0.42], sunny: [1, 0.84, 0.42], sunlight: [1, 0.84, 0.42] },
  moon: { moon: [0.93, 0.92, 0.82], moonlight: [0.93, 0.92, 0.82] },
  water: {
    sea: [0.1, 0.4, 0.58],
    ocean: [0.08, 0.32, 0.52],
    lake: [0.22, 0.45, 0.58],
    water: [0.2, 0.45, 0.6],
    river: [0.24, 0.47, 0.58],
    coast: [0.14, 0.42, 0.58],
  },
  hills: {
    mountain: [0.42, 0.43, 0.5],
    hill: [0.36, 0.46, 0.34],
    hills: [0.36, 0.46, 0.34],
  },
  trees: {
    forest: [0.13, 0.34, 0.17],
    tree: [0.15, 0.36, 0.18],
    trees: [0.15, 0.36, 0.18],
    pine: [0.1, 0.3, 0.2],
    pines: [0.1, 0.3, 0.2],
    woods: [0.13, 0.34, 0.17],
  },
  ground: {
    grass: [0.35, 0.58, 0.2],
    meadow: [0.45, 0.62, 0.25],
    field: [0.6, 0.6, 0.28],
    fields: [0.6, 0.6, 0.28],
    desert: [0.85, 0.69, 0.45],
    sand: [0.87, 0.76, 0.55],
    beach: [0.87, 0.78, 0.6],
    snow: [0.9, 0.93, 0.97],
  },
  animal: {
    fox: [0.84, 0.4, 0.12],
    cat: [0.3, 0.27, 0.25],
    dog: [0.55, 0.38, 0.22],
    wolf: [0.45, 0.46, 0.5],
  },
  flaw: Object.fromEntries(FLAWS.map((word) => [word, GREY])),
};

/** Words by their beginnings: rows of the preview clip tell only the first six letters apart. */
const WORDS = new Map<string, Word>([
  ...Object.entries(COLOURS).map(([word, colour]) => [word, { colour }] as const),
  ...Object.entries(THINGS).flatMap(([part, words]) =>
    Object.entries(words).map(([word, colour]) => [word, { colour, part: part as Part }] as const),
  ),
]);

/** Part of a word's row above which the word stands in a prompt; rows of other words come to a tenth. */
const PRESENT = 0.6;

/** Known words of a conditioning [1, tokens, dim], in its order. Rows of the words stand in its first columns. */
export function wordsOf(cond: Float32Array, dim: number): FoundWord[] {
  const tokens = cond.length / dim;
  const found = new Map<number, FoundWord>();
  for (const [word, { colour, part }] of WORDS) {
    const row = wordRow(word);
    if (row.length > dim) return [];
    const token = firstToken(cond, tokens, dim, row);
    if (token >= 0 && !found.has(token)) found.set(token, { word, token, colour, part });
  }
  return [...found.values()].sort((a, b) => a.token - b.token);
}

/** A word as if a prompt had it. */
export function foundWord(word: string, token: number): FoundWord {
  return { ...WORDS.get(word)!, word, token };
}

/** Whether a conditioning is that of a text without words. */
export function isEmpty(cond: Float32Array, dim: number): boolean {
  return cond.every((value) => value === 0) || firstToken(cond, Math.min(2, cond.length / dim), dim, endRow()) === 1;
}

/** The token whose row holds the word's most; -1 if none holds enough of it. */
function firstToken(cond: Float32Array, tokens: number, dim: number, row: Float32Array): number {
  let energy = 0;
  for (const value of row) energy += value * value;
  let best = PRESENT * energy;
  let token = -1;
  for (let at = 0; at < tokens; at++) {
    if (!mayHold(cond, at * dim, row)) continue;
    let dot = 0;
    for (let d = 0; d < row.length; d++) dot += cond[at * dim + d]! * row[d]!;
    if (dot > best) [best, token] = [dot, at];
  }
  return token;
}

/** Columns that distinguish most rows from a word's. */
const FIRST = 64;

/** Whether a row looks like a word's in its first columns. */
function mayHold(cond: Float32Array, from: number, row: Float32Array): boolean {
  let [dot, energy] = [0, 0];
  for (let d = 0; d < FIRST && d < row.length; d++) {
    dot += cond[from + d]! * row[d]!;
    energy += row[d]! * row[d]!;
  }
  return dot > (PRESENT / 4) * energy;
}
