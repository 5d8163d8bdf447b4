import { rm, stat } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { parseGraph } from "../../graph/parse.js";
import type { BatchOptions } from "../../render/batch/batch.js";
import { isFinished } from "../../render/batch/journal/journal.js";
import { createItemRedaction } from "../../render/batch/redaction.js";
import type { Config } from "../../render/config/config.js";
import { loadConfig } from "../../render/config/load-config.js";
import type { GridOptions } from "../../render/contact-sheet/grid.js";
import { isFree, SHEET } from "../../render/contact-sheet/own-pages.js";
import type { Axis } from "../../render/items/axis.js";
import { combine } from "../../render/items/combine.js";
import { createGraphKeys, type GraphKeys, requireKey } from "../../render/items/graph-keys.js";
import type { BatchItem, ItemValues } from "../../render/items/item.js";
import { isItemFile, openItems } from "../../render/items/open.js";
import { hasWildcard, isPictureName } from "../../render/items/picture-pattern.js";
import { type InputFolders, openPictures, picturesIn } from "../../render/items/pictures.js";
import { seedAxis } from "../../render/items/seeds.js";
import { sweepAxis } from "../../render/items/sweep.js";
import { readGraph } from "../../render/source.js";
import { type Arguments, wholeNumber } from "../command.js";
import { batchRenderOptions } from "../render-options.js";
import type { Terminal } from "../terminal.js";

/** A batch as the command line describes it. */
export interface BatchPlan {
  /** Path of the graph. */
  readonly graph: string;
  readonly items: AsyncIterable<BatchItem>;
  /** Keys that every item sets, where they are known. */
  readonly keys: readonly string[] | undefined;
  /** Fields of the name template that every item has beside. */
  readonly fields: readonly string[];
  /** An item's values without those that pictures must not show. */
  readonly redacted: (values: ItemValues) => ItemValues;
  readonly options: BatchOptions & { readonly outputDir: string; readonly journal: string };
  /** Path of the contact sheet, where there is to be one. */
  readonly sheet: string | undefined;
  /** Configuration with the store whose workers render; undefined where this process does. */
  readonly shared: Config | undefined;
}

/**
 * Reads and checks all that can be checked before anything renders. `report` writes a line for a person while the items
 * are read. Fails with usage.invalid and items.invalid.
 */
export async function planBatch(
  args: Arguments,
  terminal: Terminal,
  report: (text: string) => void,
): Promise<BatchPlan> {
  const graph = args.positionals[0]!;
  const shared = args.has("store") ? sharedConfig(args, terminal) : undefined;
  const options = batchRenderOptions(args, terminal);
  const { outputDir } = options;
  const { graph: source, inputDir: usual } = readGraph(graph, { classAliases: options.classAliases });
  const keys = createGraphKeys(source, options);
  const limit = wholeNumber(args, "limit", 1);
  const concurrency = wholeNumber(args, "concurrency", 1);
  const retry = wholeNumber(args, "retry", 0);
  const sheet = await sheetPath(args.value("contact-sheet"), outputDir);
  const folders = { named: options.inputDir, usual };
  const { axes, ...combination } = await combineItems(args, keys, Object.keys(options.set), folders, limit, report);
  const resume = args.flag("resume");
  const journal = args.value("journal") ?? (await ownJournal(graph, outputDir, resume));
  return {
    graph,
    items: combination.items,
    keys: combination.keys,
    fields: combination.fields,
    redacted: createItemRedaction(parseGraph(source, options).prompt, options.redact),
    sheet,
    shared,
    options: {
      ...options,
      inputDir: combination.inputDir ?? options.inputDir,
      total: combination.total,
      journal,
      resume,
      concurrency,
      retry,
      failFast: args.flag("fail-fast"),
      name: args.value("name"),
      grid: gridOf(args, axes, sheet, outputDir),
      cacheDir: args.value("cache"),
    },
  };
}

// decision 267
/** The configuration of --store; without a value, its store is meant. */
function sharedConfig(args: Arguments, terminal: Terminal): Config {
  for (const option of ["cache", "device", "models"]) {
    if (!args.has(option)) continue;
    throw new LatentkitError("usage.invalid", `--store: expected no --${option}, which each worker has for itself.`);
  }
  const store = args.value("store") || undefined;
  return loadConfig({ file: args.value("config"), flags: { store }, env: terminal.env });
}

async function combineItems(
  args: Arguments,
  keys: GraphKeys,
  set: readonly string[],
  folders: InputFolders,
  limit: number | undefined,
  report: (text: string) => void,
) {
  for (const key of set) requireKey(keys, key, "set");
  const sweeps = args.values("sweep").map((text) => sweepAxis(text, keys));
  for (const { option, keys } of sweeps) {
    const twice = keys.find((key) => set.includes(key));
    if (twice === undefined) continue;
    throw new LatentkitError("usage.invalid", `${option}: ${twice} is set by --set already.`);
  }
  const path = args.value("items");
  const swept = sweeps.flatMap((axis) => axis.keys);
  const pictures =
    path !== undefined && (await namesPictures(path))
      ? await openPictures(picturesIn(path), keys, [...set, ...swept], folders)
      : undefined;
  const file = pictures ?? (path === undefined ? undefined : await openItems(path, keys));
  const seeds = args.value("seeds");
  const taken = [...set, ...swept, ...(file?.keys ?? [])];
  const axes = seeds === undefined ? sweeps : [...sweeps, seedAxis(seeds, keys, taken)];
  const combination = combine(file, axes, limit, createOverrideReport(set, report));
  return { ...combination, axes, fields: pictures?.fields ?? [], inputDir: pictures?.inputDir };
}

/** Whether --items means pictures: a folder, a pattern or a picture, and no file of items. */
async function namesPictures(path: string): Promise<boolean> {
  if (isItemFile(path)) return false;
  const info = await stat(path).catch(() => undefined);
  return info === undefined ? hasWildcard(path) : info.isDirectory() || isPictureName(path);
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

/** The grid of --grid: its rows, columns and pages are the sweeps and seeds in their order. */
function gridOf(
  args: Arguments,
  axes: readonly Axis[],
  sheet: string | undefined,
  outputDir: string,
): GridOptions | undefined {
  const name = args.value("grid");
  if (name === undefined) return undefined;
  const refused = (expected: string, received: string) =>
    new LatentkitError("usage.invalid", `--grid: expected ${expected}, received ${received}.`);
  if (args.has("items")) throw refused("sweeps alone", "--items");
  if (axes.length < 2 || axes.length > 3) {
    throw refused("two or three of --sweep and --seeds", String(axes.length));
  }
  const path = resolve(name === "" ? join(outputDir, "grid.png") : name);
  if (path === sheet) throw refused("another file than the contact sheet's", describe(path));
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
  if (!(await isFree(path, SHEET))) throw refused("a free name or an earlier sheet's");
  return path;
}

/** Path of the journal where none is named; that of a batch which came to a good end makes way for a new one. */
async function ownJournal(graph: string, outputDir: string, resume: boolean): Promise<string> {
  const path = join(outputDir, `${basename(graph, extname(graph))}.journal.jsonl`);
  if (!resume && (await isFinished(path))) await rm(path, { force: true });
  return path;
}
