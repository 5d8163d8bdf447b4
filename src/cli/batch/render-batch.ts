import { LatentkitError } from "../../errors.js";
import { runBatch } from "../../render/batch/batch.js";
import type { BatchEvent, BatchItem, BatchStatus } from "../../render/batch/types.js";
import type { Arguments } from "../command.js";
import { batchLine, batchResultLine } from "../event-json.js";
import { shortest } from "../render-options.js";
import { harmless, type Terminal } from "../terminal.js";
import { followWithSheet } from "./batch-contact-sheet.js";
import { type BatchPlan, planBatch } from "./batch-plan.js";
import { type BatchProgress, createBatchProgress } from "./batch-progress.js";
import { createSummary, failureLines, type Summary, summaryLine } from "./batch-summary.js";

const INTERRUPTED = 130;
/** Distinct warnings that are told; a batch may repeat one for each item. */
const MAX_WARNINGS = 50;

const noProgress: BatchProgress = { show: () => {}, say: (write) => write(), end: () => {} };

/** What Ctrl-C asks: `drain` the first time, that no further item starts; `signal` the second, that all ends at once. */
interface Stops {
  readonly drain: AbortSignal;
  readonly signal: AbortSignal;
}

/** `latentkit render` with any of the options that make a batch. Answers with the exit code. */
export async function renderBatch(
  args: Arguments,
  terminal: Terminal,
  drain: AbortSignal,
  urgent: () => AbortSignal,
): Promise<number> {
  const isJson = args.flag("json");
  const isQuiet = args.flag("quiet") || isJson;
  const started = performance.now();
  const summary = createSummary();
  const result = (status: BatchStatus, more: object) => {
    if (isJson) terminal.out(batchResultLine(status, summary.read(), { ms: performance.now() - started, ...more }));
  };
  try {
    const plan = await planBatch(args, terminal);
    const progress = isQuiet ? noProgress : createBatchProgress(terminal);
    const tell = createTeller(terminal, progress, isJson);
    const { status, pages } = await follow(plan, { drain, signal: urgent() }, tell, progress, summary);
    const { journal } = plan.options;
    result(status, { journal, contactSheet: pages });
    if (!isQuiet) {
      terminal.err(`${summaryLine(summary.read(), performance.now() - started)}\n`);
      for (const page of pages) terminal.err(`Contact sheet: ${shortest(page)}\n`);
    }
    if (status === "interrupted") {
      terminal.err(`Interrupted. The same command with --resume goes on from ${shortest(journal)}.\n`);
      return INTERRUPTED;
    }
    return summary.read().failed === 0 ? 0 : 1;
  } catch (error) {
    if (error instanceof LatentkitError) result("failed", { error });
    throw error;
  } finally {
    for (const line of failureLines(summary.read(), terminal)) terminal.err(`${line}\n`);
  }
}

async function follow(plan: BatchPlan, stops: Stops, tell: Teller, progress: BatchProgress, summary: Summary) {
  const known = keepInFlight(tellingOverrides(plan, tell));
  const sheet = followWithSheet(plan);
  const quiet = announce(stops, (text) => tell.say(text));
  let status: BatchStatus = "interrupted";
  try {
    for await (const event of runBatch(plan.graph, known.items, { ...plan.options, ...stops }, plan.keys)) {
      const item = known.of(event);
      summary.add(event, item);
      tell.event(event);
      progress.show(event);
      await sheet.add(event, item);
      if (event.type === "batch-done") ({ status } = event);
    }
  } finally {
    quiet();
    progress.end();
  }
  return { status, pages: stops.signal.aborted ? [] : await sheet.finish() };
}

/** The same items; says once of each key of --set that a line of the file has its own value for it. */
async function* tellingOverrides({ items, options: { set = {} } }: BatchPlan, { say }: Teller) {
  const silent = new Set(Object.keys(set));
  for await (const item of items) {
    for (const key of silent) {
      if (!Object.hasOwn(item.values, key)) continue;
      silent.delete(key);
      const place = item.origin === undefined ? "an item" : `${item.origin.file}, line ${item.origin.line}`;
      say(`Warning: --set ${key}: ${place} has its own value, which counts there.`);
    }
    yield item;
  }
}

/** The items on their way, with what has been read of those that have not come to their end. */
function keepInFlight(source: AsyncIterable<BatchItem>) {
  const inFlight = new Map<number, BatchItem>();
  async function* items(): AsyncGenerator<BatchItem, void, undefined> {
    let index = 0;
    for await (const item of source) {
      inFlight.set(index++, item);
      yield item;
    }
  }
  return {
    items: items(),
    of(event: BatchEvent): BatchItem | undefined {
      if (!("index" in event) || event.index === undefined) return undefined;
      const item = inFlight.get(event.index);
      const isOver = event.type === "item-failed" ? !event.willRetry : /^item-(done|skipped)$/.test(event.type);
      if (isOver) inFlight.delete(event.index);
      return item;
    },
  };
}

interface Teller {
  event(event: BatchEvent): void;
  /** Words of the moment, for a person. */
  say(text: string): void;
}

/** Files on stdout as they are done, or every event as JSON; warnings on stderr, each once. */
function createTeller(terminal: Terminal, progress: BatchProgress, isJson: boolean): Teller {
  const warnings = new Set<string>();
  const say = (text: string) => progress.say(() => terminal.err(`${harmless(text)}\n`));
  return {
    say,
    event(event) {
      if (isJson) terminal.out(batchLine(event));
      else if (event.type === "item-done" && event.files.length > 0) {
        const lines = event.files.map(({ path }) => `${shortest(path)}\n`).join("");
        progress.say(() => terminal.out(lines));
      } else if (event.type === "warning" && warnings.size < MAX_WARNINGS && !warnings.has(event.message)) {
        warnings.add(event.message);
        say(`Warning: ${event.message}`);
      }
    },
  };
}

/** Says what a Ctrl-C does; the answer ends that. */
function announce({ drain, signal }: Stops, say: (text: string) => void): () => void {
  const first = () => say("Stopping: what runs comes to its end; Ctrl-C again stops at once.");
  const second = () => say("Stopping at once.");
  drain.addEventListener("abort", first);
  signal.addEventListener("abort", second);
  return () => {
    drain.removeEventListener("abort", first);
    signal.removeEventListener("abort", second);
  };
}
