import { type Contents, PIGMENTS, type Pigment } from "./scene.js";

/** Arrangements that the landscape of a prompt has. */
const LAYOUT_COUNT = 5;

/** Amounts of each pigment in the cells of a landscape, [pigments, cells]; those of a cell add up to 1. */
type Amounts = readonly Float64Array[];

/** Heights are parts of the picture's, from its top; so are widths, from its middle. */
interface Layout {
  readonly seed: number;
  readonly horizon: number;
  /** Height of the far hills. */
  readonly height: number;
  readonly light: { readonly x: number; readonly y: number };
  readonly stars: readonly { readonly x: number; readonly y: number; readonly light: number }[];
  readonly trees: readonly { readonly x: number; readonly foot: number; readonly height: number }[];
  readonly animal: { readonly x: number; readonly foot: number; readonly facing: number };
}

const LIGHT_RADIUS = 0.075;
/** Distance from the light's centre at which its glow ends. */
const GLOW = 0.5;
const STARS = 36;
const TREES = 8;
/** Height of a mirrored point above the shore, as a part of its depth below. */
const MIRRORED = 0.85;
const ANIMAL_HEIGHT = 0.26;
const BRANCHES = 5;
/** Depths of the edges of swells in a field. */
const SWELLS = [0.12, 0.3, 0.55];

/** Draws all layouts of a landscape with these contents; without any there is one, which is all of the first pigment. */
export function layoutsOf(contents: Contents | undefined, rows: number, columns: number): Amounts[] {
  if (contents !== undefined)
    return Array.from({ length: LAYOUT_COUNT }, (_, layout) =>
      draw(arranged(layout, columns / rows), contents, rows, columns),
    );
  return [PIGMENTS.map((_, pigment) => new Float64Array(rows * columns).fill(pigment === 0 ? 1 : 0))];
}

function draw(layout: Layout, contents: Contents, rows: number, columns: number): Amounts {
  const amounts = PIGMENTS.map(() => new Float64Array(rows * columns));
  const cell = new Cell(layout, contents, rows, columns);
  for (let i = 0; i < rows * columns; i++) {
    const row = Math.floor(i / columns);
    cell.paint(((i % columns) + 0.5 - columns / 2) / rows, (row + 0.5) / rows);
    for (let k = 0; k < amounts.length; k++) amounts[k]![i] = cell.amounts[k]!;
  }
  return amounts;
}

function arranged(seed: number, aspect: number): Layout {
  const at = (salt: number, from: number, to: number): number => from + (to - from) * chance(seed, salt);
  const horizon = at(1, 0.5, 0.64);
  const side = seed % 2 === 0 ? -1 : 1;
  /** Trees stand at the sides, and leave the middle free. */
  const edge = (i: number): number => (i % 2 === 0 ? -1 : 1) * aspect * (0.5 - 0.24 * chance(seed, 200 + i));
  return {
    seed,
    horizon,
    height: at(2, 0.8, 1.25),
    light: { x: -side * aspect * at(3, 0.04, 0.24), y: horizon - at(4, 0.2, 0.36) },
    stars: Array.from({ length: STARS }, (_, i) => ({
      x: aspect * (chance(seed, 300 + i) - 0.5),
      y: 0.7 * horizon * chance(seed, 400 + i),
      light: 0.25 + 0.75 * chance(seed, 500 + i),
    })),
    trees: Array.from({ length: TREES }, (_, i) => ({
      x: edge(i),
      foot: 0.93 + 0.06 * chance(seed, 600 + i),
      height: 0.18 + 0.36 * chance(seed, 700 + i),
    })),
    animal: { x: side * aspect * at(5, 0.06, 0.16), foot: 0.92, facing: -side },
  };
}

const slotOf = Object.fromEntries(PIGMENTS.map((name, k) => [name, k])) as Readonly<Record<Pigment, number>>;

/** Paint on one cell. */
class Cell {
  readonly amounts = new Float64Array(PIGMENTS.length);

  /** Width of an edge. */
  readonly #soft: number;
  readonly #far: Outline;
  readonly #near: Outline;
  readonly #bank: Outline;
  readonly #swells: readonly Outline[];
  readonly #layout: Layout;
  readonly #contents: Contents;

  constructor(layout: Layout, contents: Contents, rows: number, columns: number) {
    this.#layout = layout;
    this.#contents = contents;
    const { seed, horizon, height } = layout;
    const outline = (at: (x: number) => number) => new Outline(at, rows, columns);
    this.#soft = 1.2 / rows;
    this.#far = outline((x) => horizon - 0.02 - 0.27 * height * ridge(x * 3.1 + 9, 20 + seed));
    this.#near = outline((x) => horizon - 0.004 - 0.14 * height * ridge(x * 4.3 + 5, 40 + seed));
    this.#bank = outline((x) => 0.95 - 0.13 * ridge(x * 1.9 + 3, 80 + seed));
    this.#swells = SWELLS.map((depth, k) =>
      outline((x) => depth + 0.16 * (ridge(x * 1.6 + 7 * k, 100 + seed + k) - 0.5)),
    );
  }

  paint(x: number, y: number): void {
    const { horizon } = this.#layout;
    this.amounts.fill(0);
    if (y < horizon) this.#paintDistance(x, y);
    else if (this.#contents.water) this.#paintWater(x, y);
    else this.#paintLand(x, y);
    this.#paintFront(x, y);
  }

  /** Covers a share of the painting. */
  #over(pigment: Pigment, share: number): void {
    const { amounts } = this;
    if (share <= 0) return;
    for (let k = 0; k < amounts.length; k++) amounts[k]! *= 1 - share;
    amounts[slotOf[pigment]]! += share;
  }

  #paintDistance(x: number, y: number): void {
    const { seed, horizon, light, stars } = this.#layout;
    const low = y / horizon;
    this.#over("skyTop", 1);
    this.#over("skyLow", low * low);
    const [dx, dy] = [x - light.x, y - light.y];
    const distance = Math.sqrt(dx * dx + dy * dy);
    const near = Math.max(0, 1 - distance / GLOW);
    this.#over("glow", 0.6 * near * near);
    const drift = noise(y * 7, 60 + seed) + 0.5 * noise(y * 15, 65 + seed) + 0.6 * noise(x * 1.7 + 2 * y, 70 + seed);
    this.#over("cloud", 0.5 * within(drift, 1.05, 0.5) * (1 - 0.6 * low));
    if (this.#contents.stars) {
      for (const star of stars) {
        const apart = Math.max(Math.abs(x - star.x), Math.abs(y - star.y));
        if (apart < 0.5 * this.#soft) this.#over("star", star.light);
      }
    }
    this.#over("light", 1 - this.#below(distance, LIGHT_RADIUS));
    this.#over("far", this.#below(y, this.#far.at(x)));
    this.#over("near", this.#below(y, this.#near.at(x)));
  }

  #paintWater(x: number, y: number): void {
    const { seed, horizon, light } = this.#layout;
    const depth = (y - horizon) / (1 - horizon);
    const ripple = (noise(y * 46 + x * 3, 120 + seed) - 0.5) * 0.05 * depth;
    this.#paintDistance(x + ripple, Math.max(0, horizon - (y - horizon) * MIRRORED));
    this.#over("water", 0.35 + 0.3 * depth);
    const path = Math.abs(x + 3 * ripple - light.x) / (0.025 + 0.1 * depth);
    this.#over("light", 0.8 * within(1 - path, 0, 1) * within(noise(y * 70, 130 + seed), 0.4, 0.3));
  }

  #paintLand(x: number, y: number): void {
    const { horizon } = this.#layout;
    const depth = (y - horizon) / (1 - horizon);
    this.#over("field", 1);
    this.#over("meadow", depth * depth);
    for (const [k, outline] of this.#swells.entries()) {
      const swell = outline.at(x);
      const below = this.#below(depth, swell);
      this.#over(k === 1 ? "field" : "meadow", 0.45 * below);
      this.#over("glow", 0.12 * below * within(swell + 0.12 - depth, 0, 0.12));
    }
  }

  #paintFront(x: number, y: number): void {
    const { trees, animal } = this.#layout;
    const contents = this.#contents;
    this.#over("bank", this.#below(y, this.#bank.at(x)));
    if (contents.trees) {
      for (const { x: trunk, foot, height } of trees) {
        const up = (foot - y) / height;
        if (up <= 0 || up >= 1) continue;
        const branch = up * BRANCHES - Math.floor(up * BRANCHES);
        const half = height * 0.2 * (1 - up) * (1.25 - 0.6 * branch);
        this.#over("tree", 1 - this.#below(Math.abs(x - trunk), half));
      }
    }
    if (contents.animal)
      this.#paintAnimal(((x - animal.x) * animal.facing) / ANIMAL_HEIGHT, (animal.foot - y) / ANIMAL_HEIGHT);
  }

  /** A fox, cat, dog or wolf that sits and looks to the right; 1 is its height. */
  #paintAnimal(x: number, up: number): void {
    const soft = this.#soft / ANIMAL_HEIGHT;
    const part = (
      pigment: Pigment,
      [left, height]: readonly [number, number],
      [wide, high]: readonly [number, number],
    ) => {
      const [dx, dy] = [(x - left) / wide, (up - height) / high];
      this.#over(pigment, 1 - within(Math.sqrt(dx * dx + dy * dy), 1 - soft / wide, (2 * soft) / wide));
    };
    part("animal", [-0.36, 0.1], [0.3, 0.11]);
    part("white", [-0.6, 0.13], [0.1, 0.07]);
    part("animal", [-0.06, 0.26], [0.24, 0.3]);
    part("animal", [0.06, 0.34], [0.16, 0.3]);
    part("white", [0.12, 0.36], [0.08, 0.2]);
    part("animal", [0.12, 0.7], [0.2, 0.16]);
    part("white", [0.26, 0.64], [0.1, 0.06]);
    for (const [left, lean] of [
      [0.02, -0.3],
      [0.2, 0.25],
    ] as const) {
      const height = up - 0.78;
      const half = 0.085 * (1 - height / 0.24);
      if (height > 0 && half > 0)
        this.#over("animal", 1 - within(Math.abs(x - left - lean * height * 0.5), half, soft));
    }
  }

  /** 0 before an edge, 1 beyond it. */
  #below(value: number, edge: number): number {
    return within(value, edge - this.#soft / 2, this.#soft);
  }
}

/** Most that ripples move a reflection, as a part of a picture's height. */
const MARGIN = 0.03;

/** A line across a landscape, computed at each column and between them straight. */
class Outline {
  readonly #heights: Float64Array;
  readonly #left: number;
  readonly #rows: number;

  constructor(at: (x: number) => number, rows: number, columns: number) {
    this.#rows = rows;
    this.#left = MARGIN * rows + columns / 2;
    this.#heights = Float64Array.from({ length: Math.ceil(2 * this.#left) + 2 }, (_, i) => at((i - this.#left) / rows));
  }

  /** Height at a place up to MARGIN beside the picture. */
  at(x: number): number {
    const place = Math.max(0, x * this.#rows + this.#left);
    const before = Math.min(Math.floor(place), this.#heights.length - 2);
    const from = this.#heights[before]!;
    return from + (this.#heights[before + 1]! - from) * (place - before);
  }
}

/** Rises smoothly from 0 at `from` to 1 over a width. */
function within(value: number, from: number, width: number): number {
  const t = Math.min(1, Math.max(0, (value - from) / width));
  return t * t * (3 - 2 * t);
}

/** Outline of hills in 0 … 1, of waves of falling length and height. */
function ridge(x: number, salt: number): number {
  let [sum, height, scale] = [0, 0.5, 1];
  for (let octave = 0; octave < 4; octave++) {
    sum += height * noise(x * scale, salt * 7 + octave);
    height *= 0.5;
    scale *= 2.1;
  }
  return sum;
}

/** Smooth noise along a line, in 0 … 1. */
function noise(x: number, salt: number): number {
  const before = Math.floor(x);
  const t = x - before;
  const [from, to] = [chance(before, salt), chance(before + 1, salt)];
  return from + (to - from) * t * t * (3 - 2 * t);
}

/** A number in 0 … 1 that follows from two whole numbers. */
function chance(at: number, salt: number): number {
  let bits = Math.imul(at, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 15), 0x2c1b3c6d);
  bits = Math.imul(bits ^ (bits >>> 12), 0x297a2d39);
  return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
}
