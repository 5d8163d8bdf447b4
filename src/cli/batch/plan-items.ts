import { stat } from "node:fs/promises";
import { LatentkitError } from "../../base/errors.js";
import type { KnownKeys } from "../../render/batch/faults.js";
import { templateKeys } from "../../render/batch/names.js";
import type { Axis } from "../../render/items/axis.js";
import { combine, type ItemReader } from "../../render/items/combine.js";
import { type GraphKeys, requireKey } from "../../render/items/graph-keys.js";
import type { BatchItem, ItemValues } from "../../render/items/item.js";
import { isItemFile, openItemStream, openItems } from "../../render/items/open.js";
import { hasWildcard, isPictureName } from "../../render/items/picture-pattern.js";
import { type InputFolders, openPictures, picturesIn } from "../../render/items/pictures.js";
import { seedAxis } from "../../render/items/seeds.js";
import { sweepAxis } from "../../render/items/sweep.js";
import type { ArgumentsOf } from "../table/commands.js";
import type { Terminal } from "../terminal.js";

/** The items that the command line describes. */
export interface PlannedItems extends KnownKeys {
  readonly items: AsyncIterable<BatchItem>;
  /** Number of items, where it is known without reading them. */
  readonly total: number | undefined;
  /** Sweeps and seeds in their order. */
  readonly axes: readonly Axis[];
  /** Folder of the input images where pictures are the items. */
  readonly inputDir: string | undefined;
  /** Reads the source once more, with other axes; undefined where it can be read but once. */
  readonly again: ((axes: readonly Axis[], limit?: number) => Promise<AsyncIterable<BatchItem>>) | undefined;
  readonly limit: number | undefined;
  /** The source for messages; undefined without one. */
  readonly source: string | undefined;
  /** Whether a file or stream holds the items, whose messages begin with a line. */
  readonly hasLines: boolean;
  /** Closes the source, also where its items were never asked for. */
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
export async function planItems(
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
    throw new LatentkitError("usage.invalid", `${option}: ${twice} is set by --set already.`);
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
    const { items, keys: known, total } = combine(file?.reader, axes, limit, createOverrideReport(setKeys, report));
    const again: PlannedItems["again"] = async (axes, limit) => combine((await open?.())?.reader, axes, limit).items;
    return {
      items,
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
export function setValues(set: ItemValues, keys: GraphKeys): ItemValues {
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(set)) {
    requireKey(keys, key, "set");
    const own = keys.canonical(key);
    if (own !== key && Object.hasOwn(set, own)) {
      throw new LatentkitError("usage.invalid", `--set ${key}: ${own} is the same input, and is set as well.`);
    }
    values[own] = value;
  }
  return values;
}

/** Reports once for each key of --set that a line of the file has its own value for it. */
function createOverrideReport(set: readonly string[], report: (text: string) => void): (item: BatchItem) => void {
  const unreported = new Set(set);
  return ({ values, origin }) => {
    for (const key of unreported) {
      if (origin === undefined || !Object.hasOwn(values, key)) continue;
      unreported.delete(key);
      const line = `${origin.file}, line ${origin.line}`;
      report(`Warning: --set ${key}: ${line} has its own value, which counts there.`);
    }
  };
}
