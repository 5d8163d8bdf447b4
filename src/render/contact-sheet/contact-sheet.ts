import { readFile, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { describe, LatentkitError } from "../../errors.js";
import { makeEach } from "../../io/output-path.js";
import { encodePng } from "../../io/png.js";
import { writeFailed, writeReplacing } from "../../io/write-file.js";
import type { ItemValues } from "../batch/types.js";
import { Varying } from "./labels.js";
import { isFree, PAGE_KEY, pagePath, removeLater } from "./own-pages.js";
import { drawPage, GROUND, SIDE, type Tile } from "./page.js";
import { thumbnail } from "./thumbnail.js";

/** What became of one item. */
export interface SheetItem {
  /** From 0. */
  readonly index: number;
  readonly values: ItemValues;
  /** Paths of its PNG files; none for an item that shows none. */
  readonly pictures: readonly string[];
  readonly isFailed?: boolean;
}

export interface ContactSheet {
  /** Items may come in any order; resolves when there is room for more. Never rejects. */
  add(item: SheetItem): Promise<void>;
  /** Writes what is left; answers the paths of the pages. Fails with file.write-failed. */
  finish(): Promise<string[]>;
}

/** A picture to come. */
interface Place {
  readonly index: number;
  readonly number: string;
  readonly values: ItemValues;
  /** Undefined for an item that failed. */
  readonly path: string | undefined;
}

const MAX_TILES = 400;
const MAX_FILE_BYTES = 2 ** 30;

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
  let places: Place[] = [];
  let next = 0;
  let work = Promise.resolve();
  let failure: { error: unknown } | undefined;

  const write = async (here: readonly Place[]) => {
    if (failure !== undefined) return;
    try {
      pages.push(await writePage(path, pages.length + 1, here, title, varying));
    } catch (error) {
      failure = { error };
    }
  };
  const take = (item: SheetItem) => {
    places.push(...placesOf(item));
    while (places.length >= MAX_TILES) {
      const page = places.slice(0, MAX_TILES);
      places = places.slice(MAX_TILES);
      work = work.then(() => write(page));
    }
  };
  return {
    async add(item) {
      early.set(item.index, item);
      const before = work;
      for (let found = early.get(next); found !== undefined; found = early.get(next)) {
        early.delete(next++);
        take(found);
      }
      // a batch that is faster than its sheet waits for the page before the last
      if (before !== work) await before;
    },
    async finish() {
      // items that were cut leave gaps
      const rest = [...early.values()].sort((a, b) => a.index - b.index);
      for (const item of rest) take(item);
      if (places.length > 0) work = work.then(() => write(places));
      await work;
      if (failure !== undefined) throw failure.error;
      if (pages.length > 0) await removeLater(path, pages.length);
      return pages;
    },
  };
}

function placesOf({ index, values, pictures, isFailed = false }: SheetItem): Place[] {
  if (isFailed) return [{ index, values, number: String(index), path: undefined }];
  return pictures.map((path, i) => ({ index, values, number: i === 0 ? String(index) : `${index}-${i + 1}`, path }));
}

async function writePage(
  path: string,
  page: number,
  places: readonly Place[],
  title: string,
  varying: Varying,
): Promise<string> {
  for (const { values } of places) varying.add(values);
  const tiles: Tile[] = [];
  for (const { number, values, path } of places) {
    tiles.push({ number, parts: varying.of(values), picture: path === undefined ? "failed" : await pictureOf(path) });
  }
  const made = pagePath(path, page);
  const bytes = await encodePng(drawPage(tiles, title, subtitle(places)), { text: { [PAGE_KEY]: String(page) } });
  await makeEach(dirname(made)).catch((error: unknown) => {
    throw writeFailed(made, error);
  });
  if (!(await isFree(made))) {
    const message = `Contact sheet: expected a free name or an earlier sheet's, received ${describe(made)}, another picture.`;
    throw new LatentkitError("file.write-failed", message);
  }
  await writeReplacing(dirname(made), basename(made), bytes);
  return made;
}

async function pictureOf(path: string): Promise<Tile["picture"]> {
  try {
    if ((await stat(path)).size > MAX_FILE_BYTES) return "unreadable";
    return await thumbnail(await readFile(path), SIDE, GROUND);
  } catch {
    // the sheet shows it: somebody else moved or replaced the file
    return "unreadable";
  }
}

function subtitle(places: readonly Place[]): string {
  const [first, last] = [places[0]!.index, places.at(-1)!.index];
  const items = first === last ? `item ${first}` : `items ${first} to ${last}`;
  const failed = places.filter(({ path }) => path === undefined).length;
  return failed === 0 ? items : `${items}, ${failed} failed`;
}
