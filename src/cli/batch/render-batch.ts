import { existsSync } from "node:fs";
import { join } from "node:path";
import { onAbort } from "../../base/abort.js";
import { LatentkitError } from "../../base/errors.js";
import { isOutputLost } from "../../io/files/write-file.js";
import { printJson } from "../../io/json/print.js";
import { runPrepared } from "../../render/batch/batch.js";
import { checkItems, createItemCheck, type ItemCheck, NO_ITEMS } from "../../render/batch/check.js";
import { type BatchEvent, type BatchStatus, sheetItemOf } from "../../render/batch/events.js";
import { type PreparedBatch, prepareBatch } from "../../render/batch/prepare.js";
import type { CreateRunner } from "../../render/batch/runner.js";
import type { Config } from "../../render/config/config.js";
import { createContactSheet } from "../../render/contact-sheet/contact-sheet.js";
import { type Axis, combinations, firstValues } from "../../render/items/axes.js";
import { batchRequest } from "../render-options.js";
import type { ArgumentsOf } from "../table/commands.js";
import { harmless, INTERRUPTED, oneLine, red, shortest, type Terminal } from "../terminal.js";
import { type BatchPlan, makeWay, planBatch } from "./batch-plan.js";
import { type BatchReport, createReport } from "./batch-report.js";

/** Signals of Ctrl-C: `drain` at the first, no further item starts; `signal` at the second, all ends at once. */
interface Stops {
  readonly drain: AbortSignal;
  readonly signal: AbortSignal;
}

/** `latentkit render` with any of the options that make a batch. Returns the exit code. */
export async function renderBatch(
  args: ArgumentsOf<"render">,
  terminal: Terminal,
  drain: AbortSignal,
  urgent: () => AbortSignal,
): Promise<number> {
  const isJson = args.get("json");
  const isQuiet = args.get("quiet") || isJson;
  const report = createReport(terminal, isJson, isQuiet);
  // a pipe that stays open would keep the process alive
  const endInput = () => (args.get("items") === "-" ? terminal.input?.destroy?.() : undefined);
  const leave = onAbort(drain, endInput);
  let plan: BatchPlan | undefined;
  let begun: string | undefined;
  try {
    const request = batchRequest(args, terminal);
    plan = await planBatch(args, request, terminal, report.say);
    const stops = { drain, signal: urgent() };
    const prepared = prepareBatch(request.source, { ...plan.options, ...stops }, plan.items);
    const isCheck = args.get("check");
    const kind = { isAll: isCheck, isElsewhere: request.store !== undefined };
    const checked = await checkPlan(plan, prepared, kind, report, drain);
    if (isCheck) {
      if (isJson) terminal.out(checkLine(checked));
      else terminal.out(checkText(checked, plan));
      return 0;
    }
    await makeWay(args, plan);
    const { journal } = plan.options;
    begun = journal;
    const runnerOf = request.store && (await storeRunner(request.store, report.say));
    const counted = { ...prepared, run: { ...prepared.run, total: checked.items ?? prepared.run.total } };
    const { status, error, pages, grid } = await follow(plan, counted, runnerOf, stops, report);
    report.result(status, {
      journal,
      contactSheet: pages,
      ...(plan.options.grid && { grid }),
      ...(error && { error }),
    });
    if (!isQuiet) {
      terminal.err(`${report.summary()}\n`);
      for (const page of pages) terminal.err(`Contact sheet: ${shortest(page)}\n`);
      for (const page of grid) terminal.err(`Grid: ${shortest(page)}\n`);
    }
    if (error !== undefined) {
      terminal.err(`${red(terminal, "latentkit:")} ${harmless(howToGoOn(error, journal))}\n`);
      return error.meaning.exit;
    }
    if (status === "interrupted") {
      terminal.err(`Interrupted. Run the same command with --resume to continue from ${shortest(journal)}.\n`);
      return INTERRUPTED;
    }
    return report.counts.failed === 0 ? 0 : 1;
  } catch (error) {
    if (error instanceof LatentkitError) report.result("failed", { error });
    // a contact sheet or grid may be what met the full disk
    if (begun === undefined || !existsSync(begun) || !isOutputLost(error)) throw error;
    throw new LatentkitError(error.code, howToGoOn(error, begun), error.details, { cause: error });
  } finally {
    leave();
    endInput();
    await plan?.items.close();
    report.end();
  }
}

async function follow(
  plan: BatchPlan,
  prepared: PreparedBatch,
  runnerOf: CreateRunner | undefined,
  stops: Stops,
  report: BatchReport,
) {
  const sheet = followWithSheet(plan.sheet, prepared);
  const endNotice = reportStops(stops, report.say);
  let status: BatchStatus = "interrupted";
  let error: LatentkitError | undefined;
  let grid: readonly string[] = [];
  try {
    for await (const event of runPrepared(prepared, plan.items.items, runnerOf)) {
      report.show(event, plan.items.hasLines);
      await sheet.add(event);
      if (event.type === "batch-done") ({ status, error, grid = [] } = event);
    }
  } finally {
    endNotice();
    report.end();
  }
  return { status, error, grid, pages: stops.signal.aborted || error !== undefined ? [] : await sheet.finish() };
}

/** Makes runners whose items the workers of the configuration's store render. */
async function storeRunner(config: Config, report: (text: string) => void): Promise<CreateRunner> {
  const { createStoreRunners } = await import("../../service/store-runner.js");
  return createStoreRunners(config, report);
}

const FULL: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** Why nothing more could be written, and what to do. */
function howToGoOn({ message, details }: LatentkitError, journal: string): string {
  const remedy = FULL.has(details.systemCode) ? "Free some disk space" : "Fix the permissions";
  return `${message} ${remedy}, then run the same command with --resume to continue from ${shortest(journal)}.`;
}

/** Reports the effect of each Ctrl-C, until the returned function is called. */
function reportStops({ drain, signal }: Stops, report: (text: string) => void): () => void {
  const first = () => report("Stopping after the items in progress. Press Ctrl-C again to stop immediately.");
  const second = () => report("Stopping immediately.");
  drain.addEventListener("abort", first);
  signal.addEventListener("abort", second);
  return () => {
    drain.removeEventListener("abort", first);
    signal.removeEventListener("abort", second);
  };
}

/** A contact sheet that follows a batch's events, items of earlier runs included. */
export interface BatchSheet {
  add(event: BatchEvent): Promise<void>;
  finish(): Promise<string[]>;
}

const noSheet: BatchSheet = { add: async () => {}, finish: async () => [] };

function followWithSheet(path: string | undefined, { graph, graphName }: PreparedBatch): BatchSheet {
  if (path === undefined) return noSheet;
  const sheet = createContactSheet(path, graphName);
  return {
    async add(event) {
      const item = sheetItemOf(event);
      if (item !== undefined) await sheet.add({ ...item, values: graph.redacted(item.values) });
    },
    finish: () => sheet.finish(),
  };
}

/** Number of items whose names are printed. */
const NAMED = 3;
const REPORT_MS = 10_000;

/** Facts of a batch that are known before its first item. */
interface CheckedPlan {
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
async function checkPlan(
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
const checkLine = (checked: CheckedPlan): string => `${printJson({ type: "result", status: "success", ...checked })}\n`;

/** Result of --check for a person. */
function checkText({ items = 0, files, names }: CheckedPlan, { items: source }: BatchPlan): string {
  const from = source.source === undefined ? "" : ` from ${oneLine(source.source)}`;
  const count = `${items} ${items === 1 ? "item" : "items"}${from}: ${items === 1 ? "valid" : "all valid"}.`;
  if (files === 0) return `${count}\n`;
  const list = names.map((name) => `  ${shortest(name)}\n`).join("");
  const rest = files > names.length ? "  …\n" : "";
  return `${count}\nAt least ${files} ${files === 1 ? "file" : "files"}, starting with:\n${list}${rest}`;
}
