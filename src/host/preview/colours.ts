import { wordRow } from "./clip.js";

/** Red, green and blue in 0 … 1. */
export type Colour = readonly [number, number, number];

/** Words of prompts that name a colour, or a thing that has one; their first six letters count. */
const WORDS: Readonly<Record<string, Colour>> = {
  red: [0.8, 0.12, 0.1],
  orange: [0.93, 0.52, 0.13],
  yellow: [0.95, 0.85, 0.2],
  gold: [0.83, 0.66, 0.2],
  green: [0.2, 0.55, 0.22],
  teal: [0.1, 0.5, 0.5],
  cyan: [0.2, 0.8, 0.85],
  blue: [0.15, 0.32, 0.75],
  purple: [0.45, 0.2, 0.6],
  pink: [0.93, 0.55, 0.68],
  brown: [0.42, 0.27, 0.15],
  beige: [0.86, 0.79, 0.65],
  white: [0.95, 0.95, 0.95],
  silver: [0.72, 0.74, 0.77],
  grey: [0.5, 0.5, 0.5],
  gray: [0.5, 0.5, 0.5],
  black: [0.06, 0.06, 0.07],
  sky: [0.45, 0.66, 0.9],
  sea: [0.1, 0.4, 0.58],
  ocean: [0.08, 0.32, 0.52],
  lake: [0.22, 0.45, 0.58],
  water: [0.25, 0.5, 0.65],
  forest: [0.13, 0.34, 0.17],
  grass: [0.35, 0.58, 0.2],
  meadow: [0.45, 0.62, 0.25],
  mountain: [0.42, 0.43, 0.48],
  desert: [0.85, 0.69, 0.45],
  sand: [0.87, 0.76, 0.55],
  snow: [0.93, 0.95, 0.98],
  fire: [0.92, 0.36, 0.08],
  sunset: [0.94, 0.48, 0.25],
  sun: [0.98, 0.83, 0.4],
  dawn: [0.9, 0.68, 0.62],
  night: [0.07, 0.09, 0.2],
  moon: [0.85, 0.86, 0.8],
  fox: [0.82, 0.4, 0.13],
  rose: [0.82, 0.16, 0.3],
  skin: [0.85, 0.65, 0.53],
};

/** Part of a word's row above which the word stands in a prompt; rows of other words come to a tenth. */
const PRESENT = 0.6;

/** Colours of a conditioning [1, tokens, dim], in the order of its words. Rows of the words stand in its first columns. */
export function coloursOf(cond: Float32Array, dim: number): Colour[] {
  const tokens = cond.length / dim;
  const colours: { token: number; colour: Colour }[] = [];
  for (const [word, colour] of Object.entries(WORDS)) {
    const row = wordRow(word);
    if (row.length > dim) return [];
    const token = firstToken(cond, tokens, dim, row);
    if (token >= 0) colours.push({ token, colour });
  }
  return colours.sort((a, b) => a.token - b.token).map(({ colour }) => colour);
}

/** The token whose row holds the word's most; -1 where none holds enough of it. */
function firstToken(cond: Float32Array, tokens: number, dim: number, row: Float32Array): number {
  let energy = 0;
  for (const value of row) energy += value * value;
  let best = PRESENT * energy;
  let token = -1;
  for (let at = 0; at < tokens; at++) {
    let dot = 0;
    for (let d = 0; d < row.length; d++) dot += cond[at * dim + d]! * row[d]!;
    if (dot > best) [best, token] = [dot, at];
  }
  return token;
}
