import { existsSync } from "node:fs";
import { LatentkitError } from "../../base/errors.js";
import { isOutputLost } from "../../io/files/write-file.js";
import { runBatch } from "../../render/batch/batch.js";
import type { BatchEvent, BatchStatus } from "../../render/batch/events.js";
import type { CreateRunner } from "../../render/batch/runner.js";
import type { Config } from "../../render/config/config.js";
import { isItemFile } from "../../render/items/open.js";
import type { Arguments } from "../command.js";
import { batchLine } from "../event-json.js";
import { shortest } from "../render-options.js";
import { harmless, red, type Terminal } from "../terminal.js";
import { followWithSheet } from "./batch-contact-sheet.js";
import { type BatchPlan, planBatch } from "./batch-plan.js";
import { type BatchProgress, createBatchProgress } from "./batch-progress.js";
import { batchResultLine, createSummary, failureLines, type Summary, summaryLine } from "./batch-summary.js";

const INTERRUPTED = 130;
/** Distinct warnings that are printed; a batch may repeat one for each item. */
const MAX_WARNINGS = 50;

const noProgress: BatchProgress = { show: () => {}, printAbove: (write) => write(), end: () => {} };

/** Makes runners whose items the workers of a store render; bin/latentkit.mjs passes the real one. */
export type CreateStoreRunners = (config: Config, report: (text: string) => void) => CreateRunner;

/** Signals of Ctrl-C: `drain` at the first, no further item starts; `signal` at the second, all ends at once. */
interface Stops {
  readonly drain: AbortSignal;
  readonly signal: AbortSignal;
}

/** `latentkit render` with any of the options that make a batch. Returns the exit code. */
export async function renderBatch(
  args: Arguments,
  terminal: Terminal,
  drain: AbortSignal,
  urgent: () => AbortSignal,
  storeRunners: CreateStoreRunners,
): Promise<number> {
  const isJson = args.flag("json");
  const isQuiet = args.flag("quiet") || isJson;
  const started = performance.now();
  const summary = createSummary(isItemFile(args.value("items") ?? ""));
  const progress = isQuiet ? noProgress : createBatchProgress(terminal);
  const printer = createPrinter(terminal, progress, isJson);
  const result = (status: BatchStatus, more: object) => {
    if (isJson) terminal.out(batchResultLine(status, summary.read(), { ms: performance.now() - started, ...more }));
  };
  let begun: string | undefined;
  try {
    const plan = await planBatch(args, terminal, printer.report);
    const runnerOf = plan.shared && storeRunners(plan.shared, printer.report);
    const { journal } = plan.options;
    begun = journal;
    const { status, error, pages, grid } = await follow(
      plan,
      runnerOf,
      { drain, signal: urgent() },
      printer,
      progress,
      summary,
    );
    result(status, { journal, contactSheet: pages, ...(plan.options.grid && { grid }), ...(error && { error }) });
    if (!isQuiet) {
      terminal.err(`${summaryLine(summary.read(), performance.now() - started)}\n`);
      for (const page of pages) terminal.err(`Contact sheet: ${shortest(page)}\n`);
      for (const page of grid) terminal.err(`Grid: ${shortest(page)}\n`);
    }
    if (error !== undefined) {
      terminal.err(`${red(terminal, "latentkit:")} ${harmless(howToGoOn(error, journal))}\n`);
      return error.meaning.exit;
    }
    if (status === "interrupted") {
      terminal.err(`Interrupted. The same command with --resume goes on from ${shortest(journal)}.\n`);
      return INTERRUPTED;
    }
    return summary.read().failed === 0 ? 0 : 1;
  } catch (error) {
    if (error instanceof LatentkitError) result("failed", { error });
    // a contact sheet or grid may be what met the full disk
    if (begun === undefined || !existsSync(begun) || !isOutputLost(error)) throw error;
    throw new LatentkitError(error.code, howToGoOn(error, begun), error.details, { cause: error });
  } finally {
    progress.end();
    for (const line of failureLines(summary.read(), terminal)) terminal.err(`${line}\n`);
  }
}

async function follow(
  plan: BatchPlan,
  runnerOf: CreateRunner | undefined,
  stops: Stops,
  printer: Printer,
  progress: BatchProgress,
  summary: Summary,
) {
  const { graph, items, keys, fields, options } = plan;
  const sheet = followWithSheet(plan);
  const endNotice = reportStops(stops, printer.report);
  let status: BatchStatus = "interrupted";
  let error: LatentkitError | undefined;
  let grid: readonly string[] = [];
  try {
    for await (const event of runBatch(graph, items, { ...options, ...stops }, keys, keys, fields, runnerOf)) {
      summary.add(event);
      printer.print(event);
      progress.show(event);
      await sheet.add(event);
      if (event.type === "batch-done") ({ status, error, grid = [] } = event);
    }
  } finally {
    endNotice();
    progress.end();
  }
  return { status, error, grid, pages: stops.signal.aborted || error !== undefined ? [] : await sheet.finish() };
}

const FULL: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** Why nothing more could be written, and what to do. */
function howToGoOn({ message, details }: LatentkitError, journal: string): string {
  const remedy = FULL.has(details.systemCode) ? "Make room" : "Allow writing there";
  return `${message} ${remedy}, then the same command with --resume goes on from ${shortest(journal)}.`;
}

interface Printer {
  print(event: BatchEvent): void;
  /** Writes a line for a person. */
  report(text: string): void;
}

/** Prints files on stdout as they are done, or every event as JSON; warnings on stderr, each once. */
function createPrinter(terminal: Terminal, progress: BatchProgress, isJson: boolean): Printer {
  const warnings = new Set<string>();
  const report = (text: string) => progress.printAbove(() => terminal.err(`${harmless(text)}\n`));
  return {
    report,
    print(event) {
      if (isJson) terminal.out(batchLine(event));
      else if (event.type === "item-done" && event.files.length > 0) {
        const lines = event.files.map(({ path }) => `${shortest(path)}\n`).join("");
        progress.printAbove(() => terminal.out(lines));
      } else if (event.type === "warning" && warnings.size < MAX_WARNINGS && !warnings.has(event.message)) {
        warnings.add(event.message);
        report(`Warning: ${event.message}`);
      }
    },
  };
}

/** Reports the effect of each Ctrl-C, until the returned function is called. */
function reportStops({ drain, signal }: Stops, report: (text: string) => void): () => void {
  const first = () => report("Stopping: items that run are finished; Ctrl-C again stops at once.");
  const second = () => report("Stopping at once.");
  drain.addEventListener("abort", first);
  signal.addEventListener("abort", second);
  return () => {
    drain.removeEventListener("abort", first);
    signal.removeEventListener("abort", second);
  };
}
