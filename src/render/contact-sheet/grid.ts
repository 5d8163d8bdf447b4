import { describe, LatentkitError } from "../../base/errors.js";
import { checkOptions, FILE, type OptionRules, TEXT } from "../../base/options.js";
import { suggest } from "../../base/suggest.js";
import type { RawImage } from "../../io/png/raw-image.js";
import type { ItemValues } from "../items/item.js";
import {
  BED,
  Canvas,
  type Colour,
  charactersIn,
  cut,
  FAILED_BED,
  FAILED_INK,
  GROUND,
  INK,
  SOFT_INK,
  textHeight,
  textWidth,
  wrapText,
} from "./canvas.js";
import type { SheetItem } from "./contact-sheet.js";
import { type GridAxes, type GridAxis, GridItems, type GridTable } from "./grid-axes.js";
import { GRID, isFree, removeLater, writePage } from "./own-pages.js";
import { type Box, fileThumbnail } from "./thumbnail.js";

/** A grid of a batch's pictures: the keys of its axes, and its file. */
export interface GridOptions extends GridAxes {
  /** PNG file; the pages of a third axis are `name-2.png` and so on. `grid.png` in the output folder if absent. */
  readonly path?: string;
}

export interface Grid {
  /** Items may come in any order. */
  add(item: SheetItem): void;
  /** Writes the pages and returns their paths. Fails with file.write-failed. */
  finish(): Promise<string[]>;
}

const RULES: OptionRules<GridOptions> = { rows: TEXT, columns: TEXT, pages: TEXT, path: FILE };

/** Longest side of a cell. */
const SIDE = 256;
const MIN_SIDE = 16;
/** Smallest side of a page's cells if there is room: labels must fit their width. */
const LABEL_SIDE = 96;
/** Pixels of all cells of a page; more cells are smaller. */
const MAX_PAGE_PIXELS = 2 ** 25;
const MAX_PAGE_WIDTH = 16_000;

/** Throws usage.invalid; `keys`: keys that items may set, if they are known. */
export function checkGrid(grid: GridOptions, keys?: readonly string[]): void {
  checkOptions("grid", grid, RULES, ["rows"]);
  const axes = [grid.rows, grid.columns, grid.pages].filter((key) => key !== undefined);
  for (const [i, key] of axes.entries()) {
    const received = describe(key);
    if (axes.indexOf(key) !== i) {
      throw new LatentkitError(
        "usage.invalid",
        `grid: expected a different key for each axis, received ${received} twice.`,
      );
    }
    if (keys === undefined || keys.includes(key)) continue;
    const { suggestion, hint } = suggest(key, keys, describe);
    throw new LatentkitError("usage.invalid", `grid: expected keys that items set, received ${received}.${hint}`, {
      suggestion,
    });
  }
}

/**
 * A grid of pictures with the values of its axes beside rows and above columns, a PNG file for each page. Only paths are
 * kept until it is finished; then one picture is decoded at a time. Pages of an earlier grid of this name are replaced,
 * and those beyond the last one removed. Fails with usage.invalid if another file has the name.
 */
export async function openGrid(
  path: string,
  axes: GridAxes,
  title: string,
  redacted: (values: ItemValues) => ItemValues = (values) => values,
): Promise<Grid> {
  const refused = (expected: string) =>
    new LatentkitError("usage.invalid", `grid: expected ${expected}, received ${describe(path)}.`);
  if (!/\.png$/i.test(path)) throw refused("a name that ends in .png");
  if (!(await isFree(path, GRID))) throw refused("a free name or an earlier grid's");
  const items = new GridItems(axes, redacted);
  return {
    add: (item) => items.add(item),
    async finish() {
      const table = items.table();
      if (table === undefined) return [];
      const { pages } = table.axes;
      const paths: string[] = [];
      for (let page = 0; page < (pages?.labels.length ?? 1); page++) {
        const { canvas } = await drawGrid(table, page, title);
        paths.push(await writePage(path, page + 1, canvas, GRID));
      }
      await removeLater(path, paths.length, GRID);
      return paths;
    },
  };
}

async function drawGrid(table: GridTable, page: number, title: string): Promise<GridPage> {
  const { rows, columns, pages } = table.axes;
  const [rowCount, columnCount] = [rows.labels.length, columns?.labels.length ?? 1];
  const subtitle = pages === undefined ? "" : `${pages.name} ${pages.labels[page]}`;
  const cell = await cellOf(table, page, sideOf(rowCount, columnCount));
  const drawn = new GridPage({ title, subtitle, rows, columns, cell });
  for (let row = 0; row < rowCount; row++) {
    for (let column = 0; column < columnCount; column++) {
      const { picture, more = 0 } = table.cell({ rows: row, columns: column, pages: page }) ?? {};
      const path = picture === "failed" ? undefined : picture;
      const empty: EmptyCell = picture === undefined ? "missing" : path === undefined ? "failed" : "unreadable";
      const image = path === undefined ? undefined : await fileThumbnail(path, cell, GROUND);
      drawn.draw(row, column, image ?? empty, more);
    }
  }
  return drawn;
}

/** Longest side of a page's cells. */
function sideOf(rows: number, columns: number): number {
  const most = Math.min(Math.sqrt(MAX_PAGE_PIXELS / (rows * columns)), MAX_PAGE_WIDTH / Math.max(rows, columns));
  return Math.max(MIN_SIDE, Math.min(SIDE, Math.floor(most)));
}

/** Size of a page's cells: that of the largest picture in its first row and column, along which sizes may vary. */
async function cellOf(table: GridTable, page: number, side: number): Promise<Box> {
  let box: Box | undefined;
  const { rows, columns } = table.axes;
  const places = [
    ...(columns?.labels ?? [0]).map((_, column) => [0, column] as const),
    ...rows.labels.slice(1).map((_, row) => [row + 1, 0] as const),
  ];
  for (const [row, column] of places) {
    const { picture } = table.cell({ rows: row, columns: column, pages: page }) ?? {};
    if (picture === undefined || picture === "failed") continue;
    const image = await fileThumbnail(picture, side, GROUND);
    if (image === undefined) continue;
    box = { width: Math.max(box?.width ?? 0, image.width), height: Math.max(box?.height ?? 0, image.height) };
  }
  const least = Math.min(LABEL_SIDE, side);
  return { width: Math.max(box?.width ?? side, least), height: Math.max(box?.height ?? side, least) };
}

/** Cell without a picture, in words. */
type EmptyCell = "failed" | "unreadable" | "missing";

/** Facts that a page's layout follows from. */
export interface GridPageFacts {
  readonly title: string;
  /** "cfg 7" of the page's own axis and value; "" if there is only one page. */
  readonly subtitle: string;
  readonly rows: GridAxis;
  readonly columns: GridAxis | undefined;
  readonly cell: Box;
}

const MARGIN = 28;
const GAP = 6;
const LINE_GAP = 5;
const LABEL_GAP = 10;
const LARGE = 2;
const SMALL = 1;
/** Narrower cells have small labels. */
const MIN_LARGE_CELL = 96;
const COLUMN_LINES = 3;
const SUBTITLE_LINES = 2;
const MAX_ROW_LABEL_WIDTH = 240;
const MIN_TITLE_CHARACTERS = 12;

/** A page of a grid that is drawn cell by cell: labels first, then pictures as they are read. @internal */
export class GridPage {
  readonly canvas: Canvas;
  readonly #left: number;
  readonly #top: number;
  readonly #facts: GridPageFacts;

  constructor(facts: GridPageFacts) {
    this.#facts = facts;
    const { rows, columns, cell, title } = facts;
    const scale = scaleFor(columns?.labels ?? [], cell.width);
    const rowScale = scaleFor(rows.labels, cell.width < MIN_LARGE_CELL ? 0 : MAX_ROW_LABEL_WIDTH);
    const columnLabels = (columns?.labels ?? []).map((label) =>
      wrapText(label, charactersIn(cell.width, scale), COLUMN_LINES),
    );
    const rowLines = Math.max(1, Math.floor((cell.height + LINE_GAP) / (textHeight(rowScale) + LINE_GAP)));
    const rowLabels = rows.labels.map((label) =>
      wrapText(label, charactersIn(MAX_ROW_LABEL_WIDTH, rowScale), rowLines),
    );
    const rowName = wrapText(nameOf(rows), charactersIn(MAX_ROW_LABEL_WIDTH, LARGE), COLUMN_LINES);
    const labelWidth = Math.max(widest(rowLabels.flat(), rowScale), widest(rowName, LARGE));
    this.#left = MARGIN + labelWidth + LABEL_GAP;
    const columnCount = Math.max(1, columnLabels.length);
    const gridWidth = columnCount * (cell.width + GAP) - GAP;
    const titleWidth = Math.min(textWidth(title, LARGE), textWidth("x".repeat(MIN_TITLE_CHARACTERS), LARGE));
    const width = Math.max(this.#left + gridWidth, MARGIN + titleWidth) + MARGIN;
    const room = charactersIn(width - MARGIN * 2, LARGE);
    const subtitle = facts.subtitle === "" ? [] : wrapText(facts.subtitle, room, SUBTITLE_LINES);
    const heads = [cut(title, room), ...subtitle];
    const below = MARGIN + linesHeight(heads.length, LARGE) + LABEL_GAP * 2;
    const columnName =
      columns === undefined ? [] : wrapText(nameOf(columns), charactersIn(gridWidth, LARGE), COLUMN_LINES);
    const columnLines = Math.max(0, ...columnLabels.map(({ length }) => length));
    const names = linesHeight(columnName.length, LARGE) + (columnName.length > 0 ? LABEL_GAP : 0);
    const labelsHeight = Math.max(linesHeight(columnLines, scale), linesHeight(rowName.length, LARGE) - names);
    this.#top = below + names + labelsHeight + LABEL_GAP;
    const height = this.#top + rows.labels.length * (cell.height + GAP) - GAP + MARGIN;
    this.canvas = new Canvas(width, height, GROUND);
    this.#lines(heads, MARGIN, MARGIN, LARGE, (at) => (at === 0 ? INK : SOFT_INK));
    this.#centred(columnName, this.#left, gridWidth, below, LARGE, SOFT_INK);
    this.#lines(rowName, MARGIN, this.#top - LABEL_GAP - linesHeight(rowName.length, LARGE), LARGE, () => SOFT_INK);
    for (const [i, lines] of columnLabels.entries()) {
      const y = this.#top - LABEL_GAP - linesHeight(lines.length, scale);
      this.#centred(lines, this.#left + i * (cell.width + GAP), cell.width, y, scale, INK);
    }
    for (const [i, lines] of rowLabels.entries()) {
      const y = this.#top + i * (cell.height + GAP) + ((cell.height - linesHeight(lines.length, rowScale)) >> 1);
      for (const [k, line] of lines.entries()) {
        const x = this.#left - LABEL_GAP - textWidth(line, rowScale);
        this.canvas.text(line, x, y + k * (textHeight(rowScale) + LINE_GAP), rowScale, INK);
      }
    }
  }

  /** Draws a cell; `more`: pictures of it that are not shown. */
  draw(row: number, column: number, picture: RawImage | EmptyCell, more: number): void {
    const { canvas } = this;
    const { width, height } = this.#facts.cell;
    const x = this.#left + column * (width + GAP);
    const y = this.#top + row * (height + GAP);
    if (typeof picture === "string") {
      this.#drawEmpty(picture, x, y);
    } else {
      if (picture.width < width || picture.height < height) canvas.fill(x, y, width, height, BED);
      canvas.draw(picture, x + ((width - picture.width) >> 1), y + ((height - picture.height) >> 1));
    }
    if (more === 0) return;
    const text = cut(`+${more}`, charactersIn(width, SMALL));
    const [w, h] = [textWidth(text, SMALL) + 6, textHeight(SMALL) + 6];
    canvas.fill(x + width - w, y + height - h, w, h, GROUND);
    canvas.text(text, x + width - w + 3, y + height - h + 3, SMALL, INK);
  }

  #drawEmpty(word: EmptyCell, x: number, y: number): void {
    const { width, height } = this.#facts.cell;
    const [bed, ink] = word === "missing" ? [BED, SOFT_INK] : [FAILED_BED, FAILED_INK];
    this.canvas.fill(x, y, width, height, bed);
    if (word !== "missing") this.canvas.frame(x, y, width, height, ink);
    const scale = textWidth(word, LARGE) <= width ? LARGE : SMALL;
    const text = cut(word, charactersIn(width, scale));
    this.#centred([text], x, width, y + ((height - textHeight(scale)) >> 1), scale, ink);
  }

  #lines(lines: readonly string[], x: number, y: number, scale: number, ink: (at: number) => Colour): void {
    for (const [i, line] of lines.entries()) {
      this.canvas.text(line, x, y + i * (textHeight(scale) + LINE_GAP), scale, ink(i));
    }
  }

  #centred(lines: readonly string[], x: number, width: number, y: number, scale: number, ink: Colour): void {
    for (const [i, line] of lines.entries()) {
      const at = x + Math.max(0, (width - textWidth(line, scale)) >> 1);
      this.canvas.text(line, at, y + i * (textHeight(scale) + LINE_GAP), scale, ink);
    }
  }
}

/** The scale at which no word of the labels is broken; small if even that breaks one. */
function scaleFor(labels: readonly string[], width: number): number {
  const room = charactersIn(width, LARGE);
  return labels.every((label) => label.split(" ").every((word) => [...word].length <= room)) ? LARGE : SMALL;
}

const nameOf = ({ name, labels, hidden }: GridAxis) =>
  hidden === 0 ? name : `${name} (first ${labels.length} of ${labels.length + hidden})`;

const linesHeight = (lines: number, scale: number) => Math.max(0, lines * (textHeight(scale) + LINE_GAP) - LINE_GAP);

const widest = (lines: readonly string[], scale: number) => Math.max(0, ...lines.map((line) => textWidth(line, scale)));
