import { rm } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { describe, LatentkitError } from "../../errors.js";
import { parseGraph } from "../../graph/parse.js";
import type { BatchOptions } from "../../render/batch/batch.js";
import { createShown } from "../../render/batch/hidden.js";
import { isFinished } from "../../render/batch/journal/journal-reading.js";
import type { BatchItem, ItemValues } from "../../render/batch/types.js";
import { isFree } from "../../render/contact-sheet/own-pages.js";
import { combine } from "../../render/items/combine.js";
import { createGraphKeys, type GraphKeys, requireKey } from "../../render/items/graph-keys.js";
import { seedAxis } from "../../render/items/seeds.js";
import { readItems } from "../../render/items/source.js";
import { sweepAxis } from "../../render/items/sweep.js";
import { readGraph } from "../../render/source.js";
import { type Arguments, wholeNumber } from "../command.js";
import { renderOptions } from "../render-options.js";
import type { Terminal } from "../terminal.js";

/** A batch as the command line asks for it. */
export interface BatchPlan {
  /** Path of the graph. */
  readonly graph: string;
  readonly items: AsyncIterable<BatchItem>;
  /** What every item sets, where that is known. */
  readonly keys: readonly string[] | undefined;
  /** An item's values as pictures may show them. */
  readonly shown: (values: ItemValues) => ItemValues;
  readonly options: BatchOptions & { readonly outputDir: string; readonly journal: string };
  /** Where the contact sheet goes, if there is to be one. */
  readonly sheet: string | undefined;
}

/** Reads and checks all that can be checked before anything renders. Fails with usage.invalid and items.invalid. */
export async function planBatch(args: Arguments, terminal: Terminal): Promise<BatchPlan> {
  const graph = args.positionals[0]!;
  const options = renderOptions(args, terminal);
  const { outputDir } = options;
  const source = readGraph(graph).graph;
  const keys = createGraphKeys(source, options);
  const limit = wholeNumber(args, "limit", 1);
  const concurrency = wholeNumber(args, "concurrency", 1);
  const retry = wholeNumber(args, "retry", 0);
  const sheet = await sheetPath(args.value("contact-sheet"), outputDir);
  const { items, total, keys: known } = await itemsOf(args, keys, Object.keys(options.set), limit);
  const resume = args.flag("resume");
  const journal = args.value("journal") ?? (await ownJournal(graph, outputDir, resume));
  return {
    graph,
    items,
    keys: known,
    shown: createShown(parseGraph(source, options).prompt, options.redact),
    sheet,
    options: {
      ...options,
      total,
      journal,
      resume,
      concurrency,
      retry,
      failFast: args.flag("fail-fast"),
      name: args.value("name"),
      cacheDir: args.value("cache"),
    },
  };
}

async function itemsOf(args: Arguments, keys: GraphKeys, set: readonly string[], limit: number | undefined) {
  for (const key of set) requireKey(keys, key, "set");
  const sweeps = args.values("sweep").map((text) => sweepAxis(text, keys));
  for (const { option, keys } of sweeps) {
    const twice = keys.find((key) => set.includes(key));
    if (twice === undefined) continue;
    throw new LatentkitError("usage.invalid", `${option}: ${twice} is set by --set already.`);
  }
  const path = args.value("items");
  const file = path === undefined ? undefined : await readItems(path, keys);
  const seeds = args.value("seeds");
  const taken = [...set, ...sweeps.flatMap((axis) => axis.keys), ...(file?.keys ?? [])];
  return combine(file, seeds === undefined ? sweeps : [...sweeps, seedAxis(seeds, keys, taken)], limit);
}

async function sheetPath(given: string | undefined, outputDir: string): Promise<string | undefined> {
  if (given === undefined) return undefined;
  const path = given === "" ? join(outputDir, "contact-sheet.png") : resolve(given);
  const refused = (expected: string) =>
    new LatentkitError("usage.invalid", `--contact-sheet: expected ${expected}, received ${describe(given || path)}.`);
  if (!/\.png$/i.test(path)) throw refused("a name that ends in .png");
  if (!(await isFree(path))) throw refused("a free name or an earlier sheet's");
  return path;
}

/** The journal where none is named; that of a batch which came to a good end makes way for a new one. */
async function ownJournal(graph: string, outputDir: string, resume: boolean): Promise<string> {
  const path = join(outputDir, `${basename(graph, extname(graph))}.journal.jsonl`);
  if (!resume && (await isFinished(path))) await rm(path, { force: true });
  return path;
}
