import { rm, stat } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import type { BatchOptions } from "../../render/batch/batch-options.js";
import { isFinished } from "../../render/batch/journal/journal.js";
import { templateKeys } from "../../render/batch/names.js";
import type { KnownKeys } from "../../render/batch/prepare.js";
import type { GridOptions } from "../../render/contact-sheet/grid.js";
import { isFree, SHEET } from "../../render/contact-sheet/own-pages.js";
import { type Axis, combine, type ItemReader, sweepAxis } from "../../render/items/axes.js";
import { createGraphKeys, type GraphKeys, requireKey } from "../../render/items/graph-keys.js";
import type { BatchItem, ItemValues } from "../../render/items/item.js";
import { isItemFile, openItemStream, openItems } from "../../render/items/open.js";
import { hasWildcard, isPictureName } from "../../render/items/picture-files.js";
import { type InputFolders, openPictures, picturesIn } from "../../render/items/pictures.js";
import { seedAxis } from "../../render/items/seeds.js";
import type { BatchRequest } from "../render-options.js";
import type { ArgumentsOf } from "../table/commands.js";
import type { Terminal } from "../terminal.js";

/** A batch as the command line describes it. */
export interface BatchPlan {
  readonly items: PlannedItems;
  readonly options: BatchOptions & { readonly outputDir: string; readonly journal: string };
  /** Path of the contact sheet, if there is to be one. */
  readonly sheet: string | undefined;
}

/**
 * Reads and checks all that can be checked before anything renders. `report` writes a line for a person while the items
 * are read. Fails with usage.invalid and items.invalid.
 */
export async function planBatch(
  args: ArgumentsOf<"render">,
  { source, options }: BatchRequest,
  terminal: Terminal,
  report: (text: string) => void,
): Promise<BatchPlan> {
  const { outputDir } = options;
  const keys = createGraphKeys(source.graph, options);
  const concurrency = args.get("concurrency");
  const retry = args.get("retry");
  const sheet = await sheetPath(args.get("contact-sheet"), outputDir);
  const folders = { named: options.inputDir, usual: source.inputDir };
  const set = setValues(options.set, keys);
  const items = await planItems(args, keys, set, folders, terminal, report);
  let grid: GridOptions | undefined;
  try {
    grid = gridOf(args, items.axes, sheet, outputDir);
  } catch (error) {
    await items.close();
    throw error;
  }
  return {
    items,
    sheet,
    options: {
      ...options,
      set,
      inputDir: items.inputDir ?? options.inputDir,
      total: items.total,
      journal: args.get("journal") ?? ownJournal(args.get("GRAPH"), outputDir),
      resume: args.get("resume"),
      concurrency,
      retry,
      failFast: args.get("fail-fast"),
      name: args.get("name"),
      extraColumns: args.get("extra-columns"),
      grid,
      cacheDir: args.get("cache"),
    },
  };
}

/** The grid of --grid: its rows, columns and pages are the sweeps and seeds in their order. */
function gridOf(
  args: ArgumentsOf<"render">,
  axes: readonly Axis[],
  sheet: string | undefined,
  outputDir: string,
): GridOptions | undefined {
  const name = args.get("grid");
  if (name === undefined) return undefined;
  const refused = (expected: string, received: string) =>
    new LatentkitError("usage.invalid", `--grid: expected ${expected}, received ${received}.`);
  if (axes.length < 2 || axes.length > 3) {
    throw refused("two or three of --sweep and --seeds", String(axes.length));
  }
  const path = resolve(name === "" ? join(outputDir, "grid.png") : name);
  if (path === sheet) throw refused("a file other than the contact sheet", describe(path));
  // seeds of several nodes go together
  const [rows, columns, pages] = axes.map(({ keys }) => keys[0]!);
  return { path, rows: rows!, columns, pages };
}

async function sheetPath(name: string | undefined, outputDir: string): Promise<string | undefined> {
  if (name === undefined) return undefined;
  const path = name === "" ? join(outputDir, "contact-sheet.png") : resolve(name);
  const refused = (expected: string) =>
    new LatentkitError("usage.invalid", `--contact-sheet: expected ${expected}, received ${describe(name || path)}.`);
  if (!/\.png$/i.test(path)) throw refused("a name that ends in .png");
  if (!(await isFree(path, SHEET))) throw refused("a path that does not exist yet, or one of an earlier contact sheet");
  return path;
}

/** Path of the journal if none is named. */
const ownJournal = (graph: string, outputDir: string): string =>
  join(outputDir, `${basename(graph, extname(graph))}.journal.jsonl`);

/** Removes the plan's own journal if its batch succeeded, to make way for a new one. */
export async function makeWay(args: ArgumentsOf<"render">, { options: { journal, resume } }: BatchPlan): Promise<void> {
  if (!args.has("journal") && !resume && (await isFinished(journal))) await rm(journal, { force: true });
}

/** The items that the command line describes. */
interface PlannedItems extends KnownKeys {
  readonly items: AsyncIterable<BatchItem>;
  /** Number of items, if it is known without reading them. */
  readonly total: number | undefined;
  /** Sweeps and seeds in their order. */
  readonly axes: readonly Axis[];
  /** Folder of the input images, if the items are pictures. */
  readonly inputDir: string | undefined;
  /** Reads the source once more, with other axes; undefined if it can be read but once. */
  readonly again: ((axes: readonly Axis[], limit?: number) => Promise<AsyncIterable<BatchItem>>) | undefined;
  readonly limit: number | undefined;
  /** The source for messages; undefined without one. */
  readonly source: string | undefined;
  /** Whether a file or stream holds the items, whose messages begin with a line. */
  readonly hasLines: boolean;
  /** Closes the source, even if its items were never read. */
  close(): Promise<void>;
}

interface Source {
  readonly reader: ItemReader;
  readonly fields: readonly string[] | undefined;
  readonly inputDir?: string;
}

/** Stands for standard input. */
const STDIN = "-";

/** Opens the items of --items, --sweep and --seeds. Fails with usage.invalid, items.invalid and file.not-found. */
async function planItems(
  args: ArgumentsOf<"render">,
  keys: GraphKeys,
  set: ItemValues,
  folders: InputFolders,
  terminal: Terminal,
  report: (text: string) => void,
): Promise<PlannedItems> {
  const limit = args.get("limit");
  const setKeys = Object.keys(set);
  const sweeps = args.get("sweep").map((text) => sweepAxis(text, keys));
  for (const { option, keys } of sweeps) {
    const twice = keys.find((key) => setKeys.includes(key));
    if (twice === undefined) continue;
    throw new LatentkitError("usage.invalid", `${option}: ${twice} is already set by --set.`);
  }
  const path = args.get("items");
  const swept = sweeps.flatMap((axis) => axis.keys);
  const open = await opener(args, keys, [...setKeys, ...swept], folders, terminal);
  const file = await open?.();
  const close = async () => await file?.reader.close();
  try {
    const seeds = args.get("seeds");
    const taken = [...setKeys, ...swept, ...(file?.reader.keys ?? [])];
    const axes = seeds === undefined ? sweeps : [...sweeps, seedAxis(seeds, keys, taken)];
    const { items, keys: known, total } = combine(file?.reader, axes, limit);
    const again: PlannedItems["again"] = async (axes, limit) => combine((await open?.())?.reader, axes, limit).items;
    return {
      items: setKeys.length === 0 ? items : reportOverrides(items, setKeys, report),
      keys: known,
      settable: known,
      fields: file === undefined ? [] : file.fields,
      total,
      axes,
      inputDir: file?.inputDir,
      again: path === STDIN ? undefined : again,
      limit,
      source: path === STDIN ? "stdin" : path,
      hasLines: path === STDIN || isItemFile(path ?? ""),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Function that opens the source of --items from its beginning; undefined without one. */
async function opener(
  args: ArgumentsOf<"render">,
  keys: GraphKeys,
  taken: readonly string[],
  folders: InputFolders,
  { input }: Terminal,
): Promise<(() => Promise<Source>) | undefined> {
  const path = args.get("items");
  if (path === undefined) return undefined;
  if (path !== STDIN && (await namesPictures(path))) {
    return async () => {
      const reader = await openPictures(picturesIn(path), keys, taken, folders);
      return { reader, fields: reader.fields, inputDir: reader.inputDir };
    };
  }
  const extra = { named: templateKeys(args.get("name")), extraColumns: args.get("extra-columns") };
  return async () => {
    const isStream = path === STDIN && input !== undefined;
    const reader = isStream ? await openItemStream(input, "stdin", keys, extra) : await openItems(path, keys, extra);
    // lines of JSON may have any
    return { reader, fields: reader.keys.length + reader.fields.length === 0 ? undefined : reader.fields };
  };
}

/** Whether --items means pictures: a folder, a pattern or a picture, and no file of items. */
async function namesPictures(path: string): Promise<boolean> {
  if (isItemFile(path)) return false;
  const info = await stat(path).catch(() => undefined);
  return info === undefined ? hasWildcard(path) : info.isDirectory() || isPictureName(path);
}

/** Values of --set by the keys of their inputs. Fails with usage.invalid for a key that the graph does not know. */
function setValues(set: ItemValues, keys: GraphKeys): ItemValues {
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(set)) {
    requireKey(keys, key, "set");
    const own = keys.canonical(key);
    if (own !== key && Object.hasOwn(set, own)) {
      throw new LatentkitError("usage.invalid", `--set ${key} and --set ${own} set the same input.`);
    }
    values[own] = value;
  }
  return values;
}

/** The items, with a report once for each key of --set that a line of the file has its own value for. */
async function* reportOverrides(
  items: AsyncIterable<BatchItem>,
  set: readonly string[],
  report: (text: string) => void,
): AsyncGenerator<BatchItem, void, undefined> {
  const unreported = new Set(set);
  for await (const item of items) {
    const { values, origin } = item;
    for (const key of unreported) {
      if (origin === undefined || !Object.hasOwn(values, key)) continue;
      unreported.delete(key);
      report(`Warning: --set ${key} is overridden by ${origin.file}, line ${origin.line}.`);
    }
    yield item;
  }
}
