import { rm } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { parseGraph } from "../../graph/parse.js";
import type { BatchOptions } from "../../render/batch/batch-options.js";
import { isFinished } from "../../render/batch/journal/journal.js";
import { createItemRedaction } from "../../render/batch/redaction.js";
import type { Config } from "../../render/config/config.js";
import { loadConfig } from "../../render/config/load-config.js";
import type { GridOptions } from "../../render/contact-sheet/grid.js";
import { isFree, SHEET } from "../../render/contact-sheet/own-pages.js";
import type { Axis } from "../../render/items/axis.js";
import { createGraphKeys } from "../../render/items/graph-keys.js";
import type { ItemValues } from "../../render/items/item.js";
import { readGraph } from "../../render/source.js";
import { type Arguments, wholeNumber } from "../command.js";
import { batchRenderOptions } from "../render-options.js";
import type { Terminal } from "../terminal.js";
import { type PlannedItems, planItems, setValues } from "./plan-items.js";

/** A batch as the command line describes it. */
export interface BatchPlan {
  /** Path of the graph. */
  readonly graph: string;
  readonly source: PlannedItems;
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
  const concurrency = wholeNumber(args, "concurrency", 1);
  const retry = wholeNumber(args, "retry", 0);
  const sheet = await sheetPath(args.value("contact-sheet"), outputDir);
  const folders = { named: options.inputDir, usual };
  const set = setValues(options.set, keys);
  const planned = await planItems(args, keys, set, folders, terminal, report);
  const resume = args.flag("resume");
  let grid: GridOptions | undefined;
  try {
    grid = gridOf(args, planned.axes, sheet, outputDir);
  } catch (error) {
    await planned.close();
    throw error;
  }
  return {
    graph,
    source: planned,
    redacted: createItemRedaction(parseGraph(source, options).prompt, options.redact),
    sheet,
    shared,
    options: {
      ...options,
      set,
      inputDir: planned.inputDir ?? options.inputDir,
      total: planned.total,
      journal: args.value("journal") ?? ownJournal(graph, outputDir),
      resume,
      concurrency,
      retry,
      failFast: args.flag("fail-fast"),
      name: args.value("name"),
      extraColumns: args.flag("extra-columns"),
      grid,
      cacheDir: args.value("cache"),
    },
  };
}

// decision 267
/** The configuration of --store; without a value, its store is meant. */
function sharedConfig(args: Arguments, terminal: Terminal): Config {
  for (const option of ["cache", "device", "models", "models-device", "models-memory"]) {
    if (!args.has(option)) continue;
    throw new LatentkitError("usage.invalid", `--store: expected no --${option}, which each worker has for itself.`);
  }
  const store = args.value("store") || undefined;
  return loadConfig({ file: args.value("config"), flags: { store }, env: terminal.env });
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

/** Path of the journal where none is named. */
const ownJournal = (graph: string, outputDir: string): string =>
  join(outputDir, `${basename(graph, extname(graph))}.journal.jsonl`);

/** Removes the plan's own journal where its batch came to a good end: it makes way for a new one. */
export async function makeWay(args: Arguments, { options: { journal, resume } }: BatchPlan): Promise<void> {
  if (!args.has("journal") && !resume && (await isFinished(journal))) await rm(journal, { force: true });
}
