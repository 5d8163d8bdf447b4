import { describe, LatentkitError, suggest } from "../../base/errors.js";
import { checkOptions, FILE, type OptionRules, TEXT } from "../../base/options.js";
import type { ItemValues } from "../items/item.js";
import type { SheetItem } from "./contact-sheet.js";
import { type GridAxes, GridItems, type GridTable } from "./grid-axes.js";
import { type EmptyCell, GridPage } from "./grid-page.js";
import { GRID, isFree, removeLater, writePage } from "./own-pages.js";
import { GROUND } from "./page.js";
import { type Box, fileThumbnail } from "./thumbnail.js";

/** A grid of a batch's pictures: the keys of its axes, and its file. */
export interface GridOptions extends GridAxes {
  /** PNG file; the pages of a third axis are `name-2.png` and so on. `grid.png` in the output folder where absent. */
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
/** Smallest side of a page's cells where there is room: labels stand in their width. */
const LABEL_SIDE = 96;
/** Pixels of all cells of a page; more cells are smaller. */
const MAX_PAGE_PIXELS = 2 ** 25;
const MAX_PAGE_WIDTH = 16_000;

/** Throws usage.invalid; `keys`: keys that items may set, where they are known. */
export function checkGrid(grid: GridOptions, keys?: readonly string[]): void {
  checkOptions("grid", grid, RULES, ["rows"]);
  const axes = [grid.rows, grid.columns, grid.pages].filter((key) => key !== undefined);
  for (const [i, key] of axes.entries()) {
    const received = describe(key);
    if (axes.indexOf(key) !== i) {
      throw new LatentkitError(
        "usage.invalid",
        `grid: expected another key for each axis, received ${received} twice.`,
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
 * and those beyond the last one removed. Fails with usage.invalid where another file has the name.
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

/** Size of a page's cells: that of the largest picture of its first row and column, along which sizes vary if they do. */
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
