import { loadFont } from "../../base/lazy-packages.js";
import type { RawImage } from "../../io/png/png.js";

// decision 352
const [floor, max, min] = [Math.floor, Math.max, Math.min];

export type Colour = readonly [red: number, green: number, blue: number];

const GLYPH_COLUMNS = 5;
const GLYPH_ROWS = 7;
/** From one character to the next, in pixels of the font. */
const ADVANCE = GLYPH_COLUMNS + 1;
/** The font has none; three dots on the line. */
const ELLIPSIS = [0x40, 0x00, 0x40, 0x00, 0x40];

/** Height of a line of text, without the space to the next. */
export const textHeight = (scale: number): number => GLYPH_ROWS * scale;

export const textWidth = (text: string, scale: number): number => ([...text].length * ADVANCE - 1) * scale;

/** Characters of a text that fit a width. */
export const charactersIn = (width: number, scale: number): number => floor((width / scale + 1) / ADVANCE);

/** A picture of RGB bytes to draw on. What lies outside is left out. */
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
