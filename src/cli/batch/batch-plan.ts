import { rm } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import type { BatchOptions } from "../../render/batch/batch-options.js";
import { isFinished } from "../../render/batch/journal/journal.js";
import type { Config } from "../../render/config/config.js";
import type { GridOptions } from "../../render/contact-sheet/grid.js";
import { isFree, SHEET } from "../../render/contact-sheet/own-pages.js";
import type { Axis } from "../../render/items/axis.js";
import { createGraphKeys } from "../../render/items/graph-keys.js";
import type { GraphSource } from "../../render/source.js";
import { batchRenderOptions } from "../render-options.js";
import type { ArgumentsOf } from "../table/commands.js";
import type { Terminal } from "../terminal.js";
import { type PlannedItems, planItems, setValues } from "./plan-items.js";

/** A batch as the command line describes it. */
export interface BatchPlan {
  readonly source: GraphSource;
  readonly items: PlannedItems;
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
  args: ArgumentsOf<"render">,
  terminal: Terminal,
  report: (text: string) => void,
): Promise<BatchPlan> {
  const { source, config, options } = batchRenderOptions(args, terminal);
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
    source,
    items,
    sheet,
    // decision 267
    shared: args.has("store") ? config : undefined,
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

/** Path of the journal where none is named. */
const ownJournal = (graph: string, outputDir: string): string =>
  join(outputDir, `${basename(graph, extname(graph))}.journal.jsonl`);

/** Removes the plan's own journal where its batch came to a good end: it makes way for a new one. */
export async function makeWay(args: ArgumentsOf<"render">, { options: { journal, resume } }: BatchPlan): Promise<void> {
  if (!args.has("journal") && !resume && (await isFinished(journal))) await rm(journal, { force: true });
}
