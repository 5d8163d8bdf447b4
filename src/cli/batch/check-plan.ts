import { join } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { printJson } from "../../io/json/print.js";
import { checkItems, createItemCheck, type ItemCheck, NO_ITEMS } from "../../render/batch/check.js";
import type { PreparedBatch } from "../../render/batch/prepare.js";
import { type Axis, combinations, firstValues } from "../../render/items/axes.js";
import { oneLine, shortest } from "../terminal.js";
import type { BatchPlan } from "./batch-plan.js";
import type { BatchReport } from "./batch-report.js";

/** Number of items whose names are printed. */
const NAMED = 3;
const REPORT_MS = 10_000;

/** Facts of a batch that are known before its first item. */
export interface CheckedPlan {
  /** Number of items; undefined if they are a stream. */
  readonly items: number | undefined;
  /** Number of files at least, and the beginnings of the first names, if requested. */
  readonly files: number;
  readonly names: readonly string[];
}

/** How a plan is checked. */
interface CheckKind {
  /** Whether nothing else is asked for: a stream is checked too, and the first files are named. */
  readonly isAll: boolean;
  /** Whether workers render, which have models and files of their own. */
  readonly isElsewhere: boolean;
}

/**
 * Checks the values of all sweeps, and every line of a file of items with the first value of each sweep: each combination is
 * as good as its parts. Prints each wrong line; then fails with items.invalid. A stream is checked while it renders, unless
 * `isAll`.
 */
export async function checkPlan(
  { items: source, options }: BatchPlan,
  prepared: PreparedBatch,
  { isAll, isElsewhere }: CheckKind,
  report: BatchReport,
  signal: AbortSignal,
): Promise<CheckedPlan> {
  const { axes, again, limit } = source;
  const check = createItemCheck(prepared, isElsewhere);
  for (const axis of axes) refuseWrongValues(axis, check);
  if (again === undefined && !isAll) return { items: undefined, files: 0, names: [] };
  const each = again === undefined ? 1 : combinations(axes);
  const rowLimit = limit === undefined ? undefined : Math.ceil(limit / each);
  const rows = again === undefined ? source.items : await again(firstValues(axes), rowLimit);
  // what a picture's file holds shows when it is read
  const isLooked = source.hasLines || source.source === undefined;
  const looking = isLooked ? check : { ...check, faultOf: () => undefined };
  let wrong = 0;
  let counted = NO_ITEMS;
  const isDue = createClock(REPORT_MS);
  for await (const { fault, ...counts } of checkItems(prepared, looking, rows, signal)) {
    counted = counts;
    if (isDue()) report.say(`Checked ${counts.items} items of ${source.source} so far.`);
    if (fault === undefined) continue;
    wrong++;
    if (source.source === undefined) throw fault.error;
    report.json({ type: "item-invalid", index: fault.index * each, error: fault.error });
    report.fail("", fault.error.message);
  }
  if (wrong > 0) throw refusal(wrong, counted.items, String(source.source));
  const items = Math.min(counted.items * each, limit ?? Number.POSITIVE_INFINITY);
  if (!isAll || again === undefined) return { ...counted, items, names: counted.names.map(at(options.outputDir)) };
  const first = await again(axes, Math.min(NAMED, limit ?? NAMED));
  let named = NO_ITEMS;
  for await (const counts of checkItems(prepared, looking, first, signal)) named = counts;
  const perItem = named.items === 0 ? 0 : named.files / named.items;
  return { items, files: items * perItem, names: named.names.map(at(options.outputDir)) };
}

const at = (folder: string) => (name: string) => join(folder, name);

/** Fails with usage.invalid for a value of a sweep that its input refuses. */
function refuseWrongValues({ option, keys, samples }: Axis, check: ItemCheck): void {
  for (const value of samples()) {
    for (const key of keys) {
      const refusal = check.refusalOf(key, value);
      if (refusal === undefined) continue;
      throw new LatentkitError("usage.invalid", `${option}: ${refusal.message}`, refusal.details, { cause: refusal });
    }
  }
}

function refusal(wrong: number, items: number, source: string): LatentkitError {
  const which = items === 1 ? "the item is" : wrong === 1 ? `1 of ${items} items is` : `${wrong} of ${items} items are`;
  return new LatentkitError("items.invalid", `${source}: ${which} invalid; nothing was rendered.`);
}

/** Says once in so many ms that they have passed. */
function createClock(ms: number): () => boolean {
  let due = performance.now() + ms;
  return () => {
    if (performance.now() < due) return false;
    due = performance.now() + ms;
    return true;
  };
}

/** Result of --check as a line of JSON. */
export const checkLine = (checked: CheckedPlan): string =>
  `${printJson({ type: "result", status: "success", ...checked })}\n`;

/** Result of --check for a person. */
export function checkText({ items = 0, files, names }: CheckedPlan, { items: source }: BatchPlan): string {
  const from = source.source === undefined ? "" : ` from ${oneLine(source.source)}`;
  const count = `${items} ${items === 1 ? "item" : "items"}${from}: ${items === 1 ? "valid" : "all valid"}.`;
  if (files === 0) return `${count}\n`;
  const list = names.map((name) => `  ${shortest(name)}\n`).join("");
  const rest = files > names.length ? "  …\n" : "";
  return `${count}\nAt least ${files} ${files === 1 ? "file" : "files"}, starting with:\n${list}${rest}`;
}
