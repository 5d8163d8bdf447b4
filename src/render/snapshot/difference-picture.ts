import type { DecodedImage } from "../../io/png/png.js";
import type { RawImage } from "../../io/png/raw-image.js";
import {
  Canvas,
  type Colour,
  charactersIn,
  cut,
  GROUND,
  INK,
  SOFT_INK,
  textHeight,
  textWidth,
} from "../contact-sheet/canvas.js";

/** A picture in RGBA with 16 bits a sample, which holds every PNG file exactly. */
export interface WidePicture {
  readonly width: number;
  readonly height: number;
  readonly samples: Uint16Array;
}

/** Differences of two pictures of one size. */
export interface PixelDifference {
  /** Number of pixels that differ. */
  readonly pixels: number;
  /** Largest difference of a sample, in steps of 8 bits, rounded up. */
  readonly largest: number;
  /** Smallest rectangle that holds all of them; right and bottom are the first column and row after it. */
  readonly box: { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number };
}

// Taken from the global once: a look-up is slow in jest's context, 12 s instead of 1.3 for 512 x 512.
const [abs, ceil, floor, max, min, sqrt] = [Math.abs, Math.ceil, Math.floor, Math.max, Math.min, Math.sqrt];

/** Step of 8 bits in samples of 16. */
const STEP = 257;

/** Grey becomes three equal samples, a missing alpha becomes opaque. */
export function widePicture({ width, height, channels, data }: DecodedImage): WidePicture {
  const unit = data instanceof Uint8Array ? STEP : 1;
  const samples = new Uint16Array(width * height * 4).fill(65535);
  const colours = channels >= 3 ? 3 : 1;
  const hasAlpha = channels % 2 === 0;
  for (let pixel = 0; pixel < width * height; pixel++) {
    const [from, to] = [pixel * channels, pixel * 4];
    for (let c = 0; c < 3; c++) samples[to + c] = data[from + min(c, colours - 1)]! * unit;
    if (hasAlpha) samples[to + 3] = data[from + channels - 1]! * unit;
  }
  return { width, height, samples };
}

/** Undefined for pictures of two sizes. */
export function pixelDifference(a: WidePicture, b: WidePicture): PixelDifference | undefined {
  if (a.width !== b.width || a.height !== b.height) return undefined;
  let [pixels, largest] = [0, 0];
  const box = { left: a.width, top: a.height, right: 0, bottom: 0 };
  for (let y = 0, at = 0; y < a.height; y++) {
    for (let x = 0; x < a.width; x++, at += 4) {
      const off = offAt(a, at, b, at);
      if (off === 0) continue;
      pixels++;
      if (off > largest) largest = off;
      box.left = min(box.left, x);
      box.right = max(box.right, x + 1);
      box.top = min(box.top, y);
      box.bottom = y + 1;
    }
  }
  return { pixels, largest: ceil(largest / STEP), box };
}

/** Largest difference of the samples of two pixels, from 0 to 65535. */
function offAt(a: WidePicture, from: number, b: WidePicture, other: number): number {
  let most = 0;
  for (let c = 0; c < 4; c++) {
    const off = abs(a.samples[from + c]! - b.samples[other + c]!);
    if (off > most) most = off;
  }
  return most;
}

const LINE: Colour = [214, 214, 208];

const MARGIN = 24;
const GAP = 20;
const CAPTION_GAP = 10;
const LARGE = 2;
/** Longest side of a picture on the page; larger ones shrink by a whole number. */
const MAX_SIDE = 768;
/** Smaller pictures grow by a whole number, so that single pixels can be seen. */
const MIN_SIDE = 192;

/** The picture is this many times as large as an area that gets a frame. */
const MIN_FRAMED = 16;
const FRAME: Colour = [208, 0, 0];
const FRAME_GAP = 6;
const FRAME_LINES = 2;

/** Difference of the faintest pixel that is drawn, from 0 to 1: one step of 255 must catch the eye too. */
const FAINTEST = 0.45;

/**
 * Expected picture, actual one and difference side by side, each with its name. In the difference grey is equal, red is
 * not, and a frame shows where a few pixels are. `off` is absent for pictures of two sizes.
 */
export function drawDifference(
  expected: WidePicture,
  actual: WidePicture,
  off: PixelDifference | undefined,
  { title, subtitle }: { title: string; subtitle: string },
): Canvas {
  const width = max(expected.width, actual.width);
  const height = max(expected.height, actual.height);
  const scale = scaleOf(width, height);
  const panels = [
    { name: "expected", image: scaled(expected.width, expected.height, scale, meanOf(expected)) },
    { name: "actual", image: scaled(actual.width, actual.height, scale, meanOf(actual)) },
    { name: "difference", image: scaled(width, height, scale, differenceOf(expected, actual)) },
  ];
  const column = max(...panels.map(({ image, name }) => max(image.width, textWidth(name, LARGE))));
  const row = max(...panels.map(({ image }) => image.height));
  const top = MARGIN + textHeight(LARGE) * 2 + CAPTION_GAP + GAP;
  const pageWidth = MARGIN * 2 + panels.length * (column + GAP) - GAP;
  const page = new Canvas(pageWidth, top + textHeight(LARGE) + CAPTION_GAP + row + MARGIN, GROUND);
  const room = charactersIn(pageWidth - MARGIN * 2, LARGE);
  page.text(cut(title, room), MARGIN, MARGIN, LARGE, INK);
  page.text(cut(subtitle, room), MARGIN, MARGIN + textHeight(LARGE) + CAPTION_GAP, LARGE, SOFT_INK);
  for (const [i, { name, image }] of panels.entries()) {
    const left = MARGIN + i * (column + GAP);
    const y = top + textHeight(LARGE) + CAPTION_GAP;
    page.text(name, left, top, LARGE, INK);
    page.frame(left - 1, y - 1, image.width + 2, image.height + 2, LINE);
    page.draw(image, left, y);
    if (name === "difference" && off !== undefined) frameBox(page, off, image, { left, top: y }, scale);
  }
  return page;
}

/** Draws a frame around differences that fill a small part of the picture. */
function frameBox(
  page: Canvas,
  { box }: PixelDifference,
  image: RawImage,
  at: { left: number; top: number },
  { shrink, grow }: Scale,
): void {
  const onPage = (pixel: number) => floor(pixel / shrink) * grow;
  const [left, top] = [onPage(box.left), onPage(box.top)];
  const [width, height] = [onPage(box.right - 1) + grow - left, onPage(box.bottom - 1) + grow - top];
  if (width * height * MIN_FRAMED > image.width * image.height) return;
  const pad = FRAME_GAP + FRAME_LINES;
  for (let line = 0; line < FRAME_LINES; line++) {
    const out = pad - line;
    page.frame(at.left + left - out, at.top + top - out, width + 2 * out, height + 2 * out, FRAME);
  }
}

/** Pixels of the picture for one of the page (shrink), or the other way round (grow); one of both is 1. */
interface Scale {
  readonly shrink: number;
  readonly grow: number;
}

function scaleOf(width: number, height: number): Scale {
  const side = max(width, height);
  return { shrink: ceil(side / MAX_SIDE), grow: max(1, floor(MIN_SIDE / side)) };
}

/** Colour of a rectangle of a picture, in 0…255. */
type ColourOf = (left: number, top: number, right: number, bottom: number) => Colour;

function scaled(width: number, height: number, { shrink, grow }: Scale, colourOf: ColourOf): RawImage {
  const columns = ceil(width / shrink);
  const rows = ceil(height / shrink);
  const out = new Canvas(columns * grow, rows * grow, GROUND);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const right = min(width, (x + 1) * shrink);
      const bottom = min(height, (y + 1) * shrink);
      out.fill(x * grow, y * grow, grow, grow, colourOf(x * shrink, y * shrink, right, bottom));
    }
  }
  return out;
}

/** Mean colours, over the page's ground if transparent. */
function meanOf({ width, samples }: WidePicture): ColourOf {
  return (left, top, right, bottom) => {
    const sums = [0, 0, 0];
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) {
        const at = (y * width + x) * 4;
        const opacity = samples[at + 3]! / 65535;
        for (let c = 0; c < 3; c++) sums[c]! += (samples[at + c]! / 257) * opacity + GROUND[c]! * (1 - opacity);
      }
    }
    const count = (right - left) * (bottom - top);
    return [sums[0]! / count, sums[1]! / count, sums[2]! / count];
  };
}

/**
 * The actual picture in faint grey, and red where a pixel of the rectangle differs: the largest difference counts, so
 * that shrinking hides nothing. Parts that only one of both pictures has are full red.
 */
function differenceOf(expected: WidePicture, actual: WidePicture): ColourOf {
  const mean = meanOf(actual);
  const has = (picture: WidePicture, x: number, y: number) => x < picture.width && y < picture.height;
  return (left, top, right, bottom) => {
    let most = 0;
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) {
        const isInBoth = has(expected, x, y) && has(actual, x, y);
        const [from, other] = [(y * expected.width + x) * 4, (y * actual.width + x) * 4];
        most = max(most, isInBoth ? offAt(expected, from, actual, other) : 65535);
      }
    }
    const isInside = has(actual, right - 1, bottom - 1);
    const [red, green, blue] = isInside ? mean(left, top, right, bottom) : GROUND;
    const grey = 200 + (red * 0.3 + green * 0.59 + blue * 0.11) * 0.2;
    if (most === 0) return [grey, grey, grey];
    const strength = FAINTEST + (1 - FAINTEST) * sqrt(most / 65535);
    return [grey + (208 - grey) * strength, grey * (1 - strength), grey * (1 - strength)];
  };
}
