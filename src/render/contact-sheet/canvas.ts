import { describe } from "../../base/errors.js";
import { loadFont } from "../../base/lazy.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import type { RawImage } from "../../io/png/raw-image.js";
import type { ItemValues } from "../items/item.js";

// Taken from the global once: a look-up is slow in jest's context, 12 s instead of 1.3 for 512 x 512.
const [floor, max, min] = [Math.floor, Math.max, Math.min];

export type Colour = readonly [red: number, green: number, blue: number];

export const GROUND: Colour = [248, 248, 246];
export const INK: Colour = [34, 34, 38];
export const SOFT_INK: Colour = [92, 92, 98];
export const BED: Colour = [236, 236, 232];
export const FAILED_BED: Colour = [252, 234, 231];
export const FAILED_INK: Colour = [176, 42, 32];

const GLYPH_COLUMNS = 5;
const GLYPH_ROWS = 7;
/** From one character to the next, in pixels of the font. */
const ADVANCE = GLYPH_COLUMNS + 1;
/** The font lacks it: three dots on the line. */
const ELLIPSIS = [0x40, 0x00, 0x40, 0x00, 0x40];

/** Height of a line of text, without the space to the next. */
export const textHeight = (scale: number): number => GLYPH_ROWS * scale;

export const textWidth = (text: string, scale: number): number => ([...text].length * ADVANCE - 1) * scale;

/** Characters of a text that fit a width. */
export const charactersIn = (width: number, scale: number): number => floor((width / scale + 1) / ADVANCE);

/** A picture of RGB bytes to draw on; drawing outside has no effect. */
export class Canvas implements RawImage {
  readonly data: Uint8Array;
  readonly channels = 3;

  constructor(
    readonly width: number,
    readonly height: number,
    ground: Colour,
  ) {
    this.data = new Uint8Array(width * height * 3);
    this.fill(0, 0, width, height, ground);
  }

  fill(left: number, top: number, width: number, height: number, colour: Colour): void {
    const right = min(this.width, left + width);
    const bottom = min(this.height, top + height);
    for (let y = max(0, top); y < bottom; y++) {
      let at = (y * this.width + max(0, left)) * 3;
      for (let x = max(0, left); x < right; x++) {
        this.data[at++] = colour[0];
        this.data[at++] = colour[1];
        this.data[at++] = colour[2];
      }
    }
  }

  /** A line around a rectangle, inside it. */
  frame(left: number, top: number, width: number, height: number, colour: Colour): void {
    this.fill(left, top, width, 1, colour);
    this.fill(left, top + height - 1, width, 1, colour);
    this.fill(left, top, 1, height, colour);
    this.fill(left + width - 1, top, 1, height, colour);
  }

  /** An RGB picture that lies inside the canvas. */
  draw({ data, width, height }: RawImage, left: number, top: number): void {
    for (let y = 0; y < height; y++) {
      const row = data.subarray(y * width * 3, (y + 1) * width * 3);
      this.data.set(row, ((top + y) * this.width + left) * 3);
    }
  }

  /** One line of text; characters that the font does not know are drawn as "?". */
  text(text: string, left: number, top: number, scale: number, colour: Colour): void {
    for (const [i, character] of [...text].entries()) {
      const glyph = glyphOf(character);
      for (let column = 0; column < GLYPH_COLUMNS; column++) {
        for (let row = 0; row < GLYPH_ROWS; row++) {
          if (((glyph[column]! >> row) & 1) === 0) continue;
          this.fill(left + (i * ADVANCE + column) * scale, top + row * scale, scale, scale, colour);
        }
      }
    }
  }
}

function glyphOf(character: string): readonly number[] {
  if (character === "…") return ELLIPSIS;
  const { lookup, fontData } = loadFont();
  const at = lookup.indexOf(character);
  if (at === -1) return glyphOf("?");
  return fontData.slice(at * GLYPH_COLUMNS, (at + 1) * GLYPH_COLUMNS);
}

/** Longer values are cut; no line is that wide. */
const MAX_VALUE_CHARACTERS = 200;

/** Finds the values of a batch's items that vary so far. */
export class Varying {
  readonly #first = new Map<string, string>();
  readonly #keys = new Set<string>();

  add(values: ItemValues): void {
    for (const [key, value] of Object.entries(values)) {
      const text = inWords(value);
      const first = this.#first.get(key);
      if (first === undefined) this.#first.set(key, text);
      else if (first !== text) this.#keys.add(key);
    }
  }

  /** The values of an item that vary, as "steps 20"; seeds that are the same in several nodes are one. */
  of(values: ItemValues): string[] {
    const varying = Object.entries(values)
      .filter(([key]) => this.#keys.has(key))
      .map(([key, value]) => ({ key, name: key.slice(key.lastIndexOf(".") + 1), text: inWords(value) }));
    const isShort = ({ name, text }: { name: string; text: string }) =>
      varying.every((other) => other.name !== name || other.text === text);
    return [...new Set(varying.map((value) => `${isShort(value) ? value.name : value.key} ${value.text}`))];
  }
}

/** A value on one line, cut if it is long. */
export function inWords(value: unknown): string {
  const text =
    value instanceof NumberLiteral ? value.text : typeof value === "object" ? describe(value) : String(value);
  return text.slice(0, MAX_VALUE_CHARACTERS).replace(/\s+/g, " ");
}

/** Puts parts into at most so many lines of so many characters; a text that does not fit is cut and ends with "…". */
export function wrap(parts: readonly string[], characters: number, lines: number): string[] {
  const all: string[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    const joined = last === undefined ? part : `${last}  ${part}`;
    if (last !== undefined && [...joined].length <= characters) all[all.length - 1] = joined;
    else all.push(cut(part, characters));
  }
  if (all.length <= lines) return all;
  const visible = all.slice(0, lines);
  visible[lines - 1] = cut(`${visible[lines - 1]!.replace(/…$/, "")} …`, characters);
  return visible;
}

/**
 * Breaks a text into at most so many lines, between words, or inside words longer than a line; a text that does not
 * fit is cut and ends with "…".
 */
export function wrapText(text: string, characters: number, lines: number): string[] {
  const width = Math.max(1, characters);
  const all = [""];
  for (const word of text.split(" ")) {
    const joined = all.at(-1) === "" ? word : `${all.at(-1)} ${word}`;
    if ([...joined].length <= width) {
      all[all.length - 1] = joined;
      continue;
    }
    let rest = [...word];
    if (all.at(-1) !== "") all.push("");
    for (; rest.length > width; rest = rest.slice(width)) all.splice(-1, 1, rest.slice(0, width).join(""), "");
    all[all.length - 1] = rest.join("");
  }
  if (all.length <= lines) return all;
  const visible = all.slice(0, lines);
  visible[lines - 1] = cut(`${visible[lines - 1]} …`, width);
  return visible;
}

export function cut(text: string, characters: number): string {
  const all = [...text];
  if (all.length <= characters) return text;
  return `${all
    .slice(0, Math.max(0, characters - 1))
    .join("")
    .trimEnd()}…`;
}
