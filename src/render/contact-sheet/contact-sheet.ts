import type { RawImage } from "../../io/png/raw-image.js";
import type { ItemValues } from "../items/item.js";
import {
  BED,
  Canvas,
  charactersIn,
  cut,
  FAILED_BED,
  FAILED_INK,
  GROUND,
  INK,
  SOFT_INK,
  textHeight,
  textWidth,
  Varying,
  wrap,
} from "./canvas.js";
import { removeLater, SHEET, writePage } from "./own-pages.js";
import { fileThumbnail } from "./thumbnail.js";

/** Result of one item. */
export interface SheetItem {
  /** From 0. */
  readonly index: number;
  readonly values: ItemValues;
  /** Paths of its pictures; empty for an item without pictures. */
  readonly pictures: readonly string[];
  readonly isFailed?: boolean;
}

export interface ContactSheet {
  /** Items may come in any order; resolves when there is room for more. Never rejects. */
  add(item: SheetItem): Promise<void>;
  /** Writes the rest; returns the paths of the pages. Fails with file.write-failed. */
  finish(): Promise<string[]>;
}

/** A tile whose picture is not read yet. */
interface TileSource {
  readonly index: number;
  readonly number: string;
  readonly values: ItemValues;
  /** Undefined for an item that failed. */
  readonly path: string | undefined;
}

const MAX_TILES = 400;

/**
 * A grid of a batch's pictures with number and the values that vary, in PNG files of at most 400 pictures each: `path`,
 * then `name-2.png` and so on, in the order of the items. Pages are written as they fill, each in one step; one picture
 * is decoded at a time. Pages of an earlier sheet of this name are replaced, and those beyond the last one removed; any
 * other file of such a name is refused with file.write-failed.
 */
export function createContactSheet(path: string, title: string): ContactSheet {
  const varying = new Varying();
  const early = new Map<number, SheetItem>();
  const pages: string[] = [];
  let sources: TileSource[] = [];
  let next = 0;
  let work = Promise.resolve();
  let failure: { error: unknown } | undefined;

  const write = async (page: readonly TileSource[]) => {
    if (failure !== undefined) return;
    try {
      pages.push(await drawAndWrite(path, pages.length + 1, page, title, varying));
    } catch (error) {
      failure = { error };
    }
  };
  const take = (item: SheetItem) => {
    sources.push(...sourcesOf(item));
    while (sources.length >= MAX_TILES) {
      const page = sources.slice(0, MAX_TILES);
      sources = sources.slice(MAX_TILES);
      work = work.then(() => write(page));
    }
  };
  return {
    async add(item) {
      early.set(item.index, item);
      const before = work;
      for (let item = early.get(next); item !== undefined; item = early.get(next)) {
        early.delete(next++);
        take(item);
      }
      // a batch that is faster than its sheet waits for the page before the last
      if (before !== work) await before;
    },
    async finish() {
      // interrupted items leave gaps
      const rest = [...early.values()].sort((a, b) => a.index - b.index);
      for (const item of rest) take(item);
      if (sources.length > 0) work = work.then(() => write(sources));
      await work;
      if (failure !== undefined) throw failure.error;
      if (pages.length > 0) await removeLater(path, pages.length, SHEET);
      return pages;
    },
  };
}

function sourcesOf({ index, values, pictures, isFailed = false }: SheetItem): TileSource[] {
  if (isFailed) return [{ index, values, number: String(index), path: undefined }];
  return pictures.map((path, i) => ({ index, values, number: i === 0 ? String(index) : `${index}-${i + 1}`, path }));
}

async function drawAndWrite(
  path: string,
  page: number,
  sources: readonly TileSource[],
  title: string,
  varying: Varying,
): Promise<string> {
  for (const { values } of sources) varying.add(values);
  const tiles: Tile[] = [];
  for (const { number, values, path } of sources) {
    tiles.push({
      number,
      parts: varying.of(values),
      picture: path === undefined ? "failed" : ((await fileThumbnail(path, SIDE, GROUND)) ?? "unreadable"),
    });
  }
  return await writePage(path, page, drawPage(tiles, title, subtitle(sources)), SHEET);
}

function subtitle(sources: readonly TileSource[]): string {
  const [first, last] = [sources[0]!.index, sources.at(-1)!.index];
  const items = first === last ? `item ${first}` : `items ${first} to ${last}`;
  const failed = sources.filter(({ path }) => path === undefined).length;
  return failed === 0 ? items : `${items}, ${failed} failed`;
}

/** One tile of a page. */
interface Tile {
  /** Number of the item. */
  readonly number: string;
  /** Its values that vary. */
  readonly parts: readonly string[];
  /** At most SIDE wide and high; a word that says why there is none. */
  readonly picture: RawImage | "failed" | "unreadable";
}

/** Longest side of a picture on a page. */
const SIDE = 192;

const MARGIN = 28;
const GAP = 20;
const ROW_GAP = 30;
const TITLE_GAP = 20;
const LABEL_GAP = 8;
const LINE_GAP = 5;
const MIN_CELL_WIDTH = 120;
const MIN_CELL_HEIGHT = 48;
const MAX_COLUMNS = 16;
const VALUE_LINES = 3;
/** Pixels of the picture for one of the font. */
const LARGE = 2;
const SMALL = 1;

/** A grid of pictures with labels under them, as large as they need. */
function drawPage(tiles: readonly Tile[], title: string, subtitle: string): Canvas {
  const cell = cellOf(tiles);
  const labels = tiles.map(({ parts }) => wrap(parts, charactersIn(cell.width, SMALL), VALUE_LINES));
  const lines = Math.max(0, ...labels.map(({ length }) => length));
  const labelHeight = LABEL_GAP + textHeight(LARGE) + lines * (LINE_GAP + textHeight(SMALL));
  const rowHeight = cell.height + labelHeight + ROW_GAP;
  const columns = columnsOf(tiles.length, cell.width + GAP, rowHeight);
  const rows = Math.ceil(tiles.length / columns);
  const top = MARGIN + textHeight(LARGE) + LINE_GAP * 2 + textHeight(SMALL) + TITLE_GAP;
  const width = MARGIN * 2 + columns * (cell.width + GAP) - GAP;
  const page = new Canvas(width, top + rows * rowHeight - ROW_GAP + MARGIN, GROUND);
  const room = width - MARGIN * 2;
  page.text(cut(title, charactersIn(room, LARGE)), MARGIN, MARGIN, LARGE, INK);
  const below = MARGIN + textHeight(LARGE) + LINE_GAP * 2;
  page.text(cut(subtitle, charactersIn(room, SMALL)), MARGIN, below, SMALL, SOFT_INK);
  for (const [i, tile] of tiles.entries()) {
    const x = MARGIN + (i % columns) * (cell.width + GAP);
    const y = top + Math.floor(i / columns) * rowHeight;
    drawTile(page, tile, x, y, cell);
    let line = y + cell.height + LABEL_GAP;
    page.text(cut(tile.number, charactersIn(cell.width, LARGE)), x, line, LARGE, INK);
    line += textHeight(LARGE) + LINE_GAP;
    for (const text of labels[i]!) {
      page.text(text, x, line, SMALL, SOFT_INK);
      line += textHeight(SMALL) + LINE_GAP;
    }
  }
  return page;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function cellOf(tiles: readonly Tile[]): Size {
  let [width, height] = [MIN_CELL_WIDTH, MIN_CELL_HEIGHT];
  for (const { picture } of tiles) {
    if (typeof picture === "string") continue;
    width = Math.max(width, picture.width);
    height = Math.max(height, picture.height);
  }
  return { width, height };
}

/** Number of columns that makes the page about as wide as high. */
function columnsOf(count: number, width: number, height: number): number {
  const square = Math.ceil(Math.sqrt((count * height) / width));
  return Math.max(1, Math.min(count, square, MAX_COLUMNS));
}

function drawTile(page: Canvas, { picture }: Tile, x: number, y: number, cell: Size): void {
  if (typeof picture !== "string") {
    const isFull = picture.width === cell.width && picture.height === cell.height;
    if (!isFull) page.fill(x, y, cell.width, cell.height, BED);
    const left = x + ((cell.width - picture.width) >> 1);
    page.draw(picture, left, y + ((cell.height - picture.height) >> 1));
    return;
  }
  page.fill(x, y, cell.width, cell.height, FAILED_BED);
  page.frame(x, y, cell.width, cell.height, FAILED_INK);
  const scale = textWidth(picture, LARGE) <= cell.width ? LARGE : SMALL;
  const left = x + ((cell.width - textWidth(picture, scale)) >> 1);
  page.text(picture, left, y + ((cell.height - textHeight(scale)) >> 1), scale, FAILED_INK);
}
