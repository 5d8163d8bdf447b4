import { createGenerator } from "../../tensor/random.js";
import type { Tensor } from "../../tensor/tensor.js";
import { type Colour, coloursOf } from "./colours.js";

/** Colours of a prompt's picture: of a subject, and of what is above and below the horizon behind it. */
export interface Scene {
  readonly subject: Colour;
  readonly above: Colour;
  readonly below: Colour;
  /** Spread of its latents: 1, and more for a prompt that says little. */
  readonly spread: number;
}

/** One arrangement of a scene: height of its horizon, centre and radius of its subject, as parts of the picture. */
export interface Layout {
  readonly horizon: number;
  readonly centre: readonly [x: number, y: number];
  readonly radius: number;
}

export const LAYOUTS: readonly Layout[] = [
  { horizon: 0.62, centre: [0.5, 0.5], radius: 0.24 },
  { horizon: 0.5, centre: [0.3, 0.56], radius: 0.2 },
  { horizon: 0.7, centre: [0.68, 0.48], radius: 0.22 },
  { horizon: 0.42, centre: [0.55, 0.66], radius: 0.26 },
];

/** Width of an edge between two colours, as a part of the picture. */
const EDGE = 0.12;
/** Distance of a muted colour from grey at most. */
const MUTED = 0.07;
/** Spread where no word has a colour, so that guidance away from such a prompt does not run out of all colours. */
const VAGUE = 2;
const SEED = 0x70726576;

/** Scene of a conditioning [1, tokens, dim]: its words' colours, or muted ones where no word has one. */
export function sceneOf({ data, shape }: Tensor): Scene {
  const colours = coloursOf(data, shape.at(-1) ?? 0);
  if (colours.length === 0) return mutedScene(data);
  const [subject, last] = [colours[0]!, colours.at(-1)!];
  if (colours.length === 1) return { subject, above: mixed(subject, 1), below: mixed(subject, 0), spread: 1 };
  const below = colours.length === 2 ? mixed(last, 0) : colours[colours.length >> 1]!;
  return { subject, above: last, below, spread: 1 };
}

/** Share of each colour at a point of the picture: subject, above, below; they add up to 1. */
export function sharesAt({ horizon, centre, radius }: Layout, x: number, y: number): [number, number, number] {
  const [dx, dy] = [x - centre[0], y - centre[1]];
  const subject = 1 - step(Math.sqrt(dx * dx + dy * dy), radius);
  const below = step(y, horizon);
  return [subject, (1 - subject) * (1 - below), (1 - subject) * below];
}

/** Rises from 0 to 1 around an edge. */
function step(value: number, edge: number): number {
  const t = Math.min(1, Math.max(0, (value - edge) / EDGE + 0.5));
  return t * t * (3 - 2 * t);
}

/** A third of the way to a grey level. */
const mixed = ([red, green, blue]: Colour, level: number): Colour => [
  (2 * red + level) / 3,
  (2 * green + level) / 3,
  (2 * blue + level) / 3,
];

/** Colours near grey that follow from the values of a conditioning. */
function mutedScene(data: Float32Array): Scene {
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum += data[i]! * ((i % 13) - 6);
  const seed = SEED + (Number.isFinite(sum) ? Math.abs(Math.trunc(sum * 64)) % 0x10000 : 0);
  const { data: normals } = createGenerator({ seed }).randn([9]);
  const colour = (from: number): Colour => [near(normals[from]!), near(normals[from + 1]!), near(normals[from + 2]!)];
  return { subject: colour(0), above: colour(3), below: colour(6), spread: VAGUE };
}

const near = (normal: number): number => 0.5 + MUTED * Math.min(1, Math.max(-1, normal));
