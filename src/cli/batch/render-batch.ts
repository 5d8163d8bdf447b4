import { existsSync } from "node:fs";
import { onAbort } from "../../base/abort.js";
import { LatentkitError } from "../../base/errors.js";
import { isOutputLost } from "../../io/files/write-file.js";
import { runPrepared } from "../../render/batch/batch.js";
import { type BatchEvent, type BatchStatus, sheetItemOf } from "../../render/batch/events.js";
import { type PreparedBatch, prepareBatch } from "../../render/batch/prepare.js";
import type { CreateRunner } from "../../render/batch/runner.js";
import type { Config } from "../../render/config/config.js";
import { createContactSheet } from "../../render/contact-sheet/contact-sheet.js";
import { batchRequest } from "../render-options.js";
import type { ArgumentsOf } from "../table/commands.js";
import { harmless, INTERRUPTED, red, shortest, type Terminal } from "../terminal.js";
import { type BatchPlan, makeWay, planBatch } from "./batch-plan.js";
import { type BatchReport, createReport } from "./batch-report.js";
import { checkLine, checkPlan, checkText } from "./check-plan.js";

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
