import { describe, type LatentkitError } from "../../base/errors.js";
import { printJson } from "../../io/json/print.js";
import type { BatchEvent, BatchStatus } from "../../render/batch/events.js";
import type { ItemValues } from "../../render/items/item.js";
import { plainData } from "../../render/plain.js";
import { BAR_WIDTH, barOf, EMPTY_LINE, harmless, red, shortest, type Terminal } from "../terminal.js";

/** Distinct warnings that are printed; a batch may repeat one for each item. */
const MAX_WARNINGS = 50;
/** Failed items that the result names; each also has its own event. */
const MAX_NAMED = 20;
const MAX_VALUES = 3;
const MAX_VALUE_CHARACTERS = 40;

/** Report of a batch to a person, or with --json to a program. */
export interface BatchReport {
  /** Counts an event and prints it. `hasLines`: a file or stream holds the items, whose messages begin with a line of it. */
  show(event: BatchEvent, hasLines: boolean): void;
  /** Writes a line for a person. */
  say(text: string): void;
  /** Writes a line on an item that cannot be rendered, `which` in front of it. */
  fail(which: string, message: string): void;
  /** Writes a line of JSON, with --json. */
  json(line: object): void;
  /** Writes the outcome as a line of JSON, with --json; it names the first items that failed. */
  result(status: BatchStatus, more: object): void;
  /** "12 done, 3 failed, 5 skipped in 8.02 s (1.9 per second)" */
  summary(): string;
  readonly counts: BatchCounts;
  /** Takes the bar away. */
  end(): void;
}

/** Prints files on stdout as they are done, or every event as JSON; failures and warnings on stderr, these each once. */
export function createReport(terminal: Terminal, isJson: boolean, isQuiet: boolean): BatchReport {
  const started = performance.now();
  const progress = isQuiet ? noProgress : createBatchProgress(terminal);
  const warnings = new Set<string>();
  const failures: Failure[] = [];
  const counts = { done: 0, partial: 0, skipped: 0, failed: 0 };
  const write = (line: string) => progress.printAbove(() => terminal.err(`${line}\n`));
  const say = (text: string) => write(harmless(text));
  const fail = (which: string, message: string) =>
    write(`${which === "" ? "" : `${red(terminal, harmless(which))}: `}${harmless(message)}`);
  const json = (line: object) => (isJson ? terminal.out(`${printJson(plainData(line))}\n`) : undefined);
  return {
    say,
    fail,
    json,
    counts,
    end: progress.end,
    summary: () => summaryLine(counts, performance.now() - started),
    result(status, more) {
      const { partial, done, ...others } = counts;
      const ms = performance.now() - started;
      json({ type: "result", status, done, ...(partial > 0 && { partial }), ...others, failures, ms, ...more });
    },
    show(event, hasLines) {
      json(event);
      if (event.type === "item-done") {
        counts.done++;
        if (event.leftOut !== undefined) counts.partial++;
        const lines = event.files.map(({ path }) => `${shortest(path)}\n`).join("");
        if (lines !== "" && !isJson) progress.printAbove(() => terminal.out(lines));
      } else if (event.type === "item-skipped") counts.skipped++;
      else if (event.type === "item-failed" && !event.willRetry) {
        counts.failed++;
        if (failures.length < MAX_NAMED) failures.push({ index: event.index, error: event.error });
        const values = hasLines ? "" : brief(event.values);
        fail(`Item ${event.index}${values === "" ? "" : ` (${values})`}`, event.error.message);
      } else if (event.type === "warning" && !isJson && warnings.size < MAX_WARNINGS && !warnings.has(event.message)) {
        warnings.add(event.message);
        say(`Warning: ${event.message}`);
      }
      progress.show(event);
    },
  };
}

/** Counts of a batch so far. */
interface BatchCounts {
  readonly done: number;
  /** Number of done items that were rendered without some outputs. */
  readonly partial: number;
  readonly skipped: number;
  readonly failed: number;
}

interface Failure {
  readonly index: number;
  readonly error: LatentkitError;
}

function summaryLine({ done, partial, failed, skipped }: BatchCounts, ms: number): string {
  const words = [`${done} done${partial > 0 ? ` (${partial} without some outputs)` : ""}`];
  if (failed > 0) words.push(`${failed} failed`);
  if (skipped > 0) words.push(`${skipped} skipped`);
  const rate = done + failed > 0 ? ` (${perSecond((done + failed) / (ms / 1000))} per second)` : "";
  const time = ms < 10_000 ? `${(ms / 1000).toFixed(2)} s` : duration(ms / 1000);
  return `${words.join(", ")} in ${time}${rate}`;
}

function brief(values: ItemValues): string {
  const all = Object.entries(values);
  const pairs = all.slice(0, MAX_VALUES).map(([key, value]) => {
    const text = describe(value);
    return `${key} ${text.length > MAX_VALUE_CHARACTERS ? `${text.slice(0, MAX_VALUE_CHARACTERS)}…` : text}`;
  });
  return [...pairs, ...(all.length > MAX_VALUES ? ["…"] : [])].join(", ");
}

const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 10_000;
/** Even if nothing happens for a while. */
const TICK_MS = 500;
/** The rate is that of the last half minute, and of so many items at least: it follows a change, and does not jump. */
const WINDOW_MS = 30_000;
const WINDOW_ITEMS = 20;
const MARK_EVERY_MS = 1000;

export interface BatchProgress {
  show(event: BatchEvent): void;
  /** Calls `write` with the bar cleared, and draws the bar again below what it printed. */
  printAbove(write: () => void): void;
  /** Takes the bar away and stops the clock. */
  end(): void;
}

const noProgress: BatchProgress = { show: () => {}, printAbove: (write) => write(), end: () => {} };

/** Progress of a batch on stderr: a bar on a terminal, elsewhere a line every 10 s. `now` in ms. @internal */
export function createBatchProgress(terminal: Terminal, now = () => performance.now()): BatchProgress {
  const tally = createTally(now);
  const every = terminal.isTerminal ? BAR_EVERY_MS : LINE_EVERY_MS;
  let due = terminal.isTerminal ? now() : now() + every;
  let isShown = false;
  const draw = () => {
    if (now() < due || !tally.isRunning) return;
    due = now() + every;
    isShown = terminal.isTerminal;
    terminal.err(
      terminal.isTerminal ? `${EMPTY_LINE}${progressBar(tally.read(), terminal)}` : `${progressLine(tally.read())}\n`,
    );
  };
  const clear = () => {
    if (isShown) terminal.err(EMPTY_LINE);
    isShown = false;
  };
  const timer = setInterval(draw, TICK_MS);
  timer.unref();
  return {
    show(event) {
      tally.add(event);
      draw();
    },
    printAbove(write) {
      const wasShown = isShown;
      clear();
      write();
      if (!wasShown) return;
      due = now();
      draw();
    },
    end() {
      clearInterval(timer);
      clear();
    },
  };
}

interface Count {
  /** Items that came to an end, also those of earlier runs. */
  readonly ended: number;
  readonly failed: number;
  readonly total: number | undefined;
  /** Items a second of late; undefined before the first has ended. */
  readonly rate: number | undefined;
  readonly secondsLeft: number | undefined;
}

function createTally(now: () => number) {
  let [done, failed, skipped] = [0, 0, 0];
  let total: number | undefined;
  const pace = createPace();
  let isRunning = false;
  return {
    get isRunning() {
      return isRunning;
    },
    add(event: BatchEvent) {
      if (event.type === "batch-start") {
        ({ total } = event);
        pace.add(0, now());
        isRunning = true;
      } else if (event.type === "item-done") done++;
      else if (event.type === "item-skipped") skipped++;
      else if (event.type === "item-failed" && !event.willRetry) failed++;
      else if (event.type === "batch-done") isRunning = false;
      pace.add(done + failed, now());
    },
    read(): Count {
      const ended = done + failed;
      const rate = pace.read(ended, now());
      const left = total === undefined ? undefined : Math.max(0, total - ended - skipped);
      const secondsLeft = left === undefined || rate === undefined ? undefined : left / rate;
      return { ended: ended + skipped, failed, total, rate, secondsLeft };
    },
  };
}

/** Items a second over a window that moves along. */
function createPace() {
  /** How many items had ended when; the first one begins the window. */
  const marks: { readonly ended: number; readonly at: number }[] = [];
  return {
    add(ended: number, at: number) {
      const last = marks.at(-1);
      if (last !== undefined && (ended === last.ended || at - last.at < MARK_EVERY_MS)) return;
      marks.push({ ended, at });
      while (marks.length > 2 && at - marks[1]!.at >= WINDOW_MS && ended - marks[1]!.ended >= WINDOW_ITEMS)
        marks.shift();
    },
    read(ended: number, at: number): number | undefined {
      const [first] = marks;
      if (first === undefined || ended === first.ended || at <= first.at) return undefined;
      return ((ended - first.ended) * 1000) / (at - first.at);
    },
  };
}

function progressBar({ ended, failed, total, rate, secondsLeft }: Count, terminal: Terminal): string {
  const words = total === undefined ? [`${ended} done`] : [`${ended}/${total}`, percent(ended, total)];
  if (rate !== undefined) words.push(rate < 1 ? `${perItem(rate)} each` : `${perSecond(rate)}/s`);
  if (secondsLeft !== undefined) words.push(`${duration(secondsLeft)} left`);
  const share = total === undefined ? undefined : Math.min(1, ended / Math.max(1, total));
  const filled = Math.floor(BAR_WIDTH * (share ?? 0));
  const faults = failed === 0 ? "" : `${failed} failed`;
  const all = [...words, ...(faults === "" ? [] : [faults])].join("  ");
  const room = terminal.columns - 1 - (share === undefined ? 0 : BAR_WIDTH + 1);
  // a line that wraps could not be drawn over
  const text = all.length > room ? all.slice(0, Math.max(0, room)) : all.replace(faults, () => red(terminal, faults));
  return `${share === undefined ? "" : `${barOf(terminal, filled)} `}${text}`;
}

function progressLine({ ended, failed, total, rate, secondsLeft }: Count): string {
  const words = [total === undefined ? `${ended} done` : `${ended} of ${total} done (${percent(ended, total)})`];
  if (rate !== undefined) words.push(rate < 1 ? `${perItem(rate)} each` : `${perSecond(rate)} per second`);
  if (secondsLeft !== undefined) words.push(`${duration(secondsLeft)} left`);
  if (failed > 0) words.push(`${failed} failed`);
  return words.join(", ");
}

/** Whole percent, 100 only with the last item. */
const percent = (ended: number, total: number): string =>
  `${total === 0 ? 100 : Math.min(100, Math.floor((100 * ended) / total))} %`;

/** "1.7 s", "42 s", "3 min 5 s" */
const perItem = (rate: number): string => (rate > 0.1 ? `${(1 / rate).toFixed(1)} s` : duration(1 / rate));

const perSecond = (rate: number): string => (rate >= 100 ? rate.toFixed(0) : rate.toPrecision(2));

/** "42 s", "3 min 5 s", "2 h 10 min" @internal */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
