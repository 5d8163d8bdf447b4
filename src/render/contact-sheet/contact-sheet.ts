import type { ItemValues } from "../items/item.js";
import { Varying } from "./labels.js";
import { removeLater, SHEET, writePage } from "./own-pages.js";
import { drawPage, GROUND, SIDE, type Tile } from "./page.js";
import { fileThumbnail } from "./thumbnail.js";

/** Result of one item. */
export interface SheetItem {
  /** From 0. */
  readonly index: number;
  readonly values: ItemValues;
  /** Paths of its pictures; none for an item that shows none. */
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
      // items that were cut leave gaps
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
