import type { BatchEvent } from "../../render/batch/events.js";
import { dim, red, type Terminal } from "../terminal.js";

const BAR_WIDTH = 24;
const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 10_000;
/** Also where nothing happens for a while. */
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

/** Progress of a batch on stderr: a bar on a terminal, elsewhere a line every 10 s. `now` in ms. */
export function createBatchProgress(terminal: Terminal, now = () => performance.now()): BatchProgress {
  const tally = createTally(now);
  const every = terminal.isTerminal ? BAR_EVERY_MS : LINE_EVERY_MS;
  let due = terminal.isTerminal ? now() : now() + every;
  let isShown = false;
  const draw = () => {
    if (now() < due || !tally.isRunning) return;
    due = now() + every;
    isShown = terminal.isTerminal;
    terminal.err(terminal.isTerminal ? `\r\x1b[2K${bar(tally.read(), terminal)}` : `${line(tally.read())}\n`);
  };
  const clear = () => {
    if (isShown) terminal.err("\r\x1b[2K");
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

function bar({ ended, failed, total, rate, secondsLeft }: Count, terminal: Terminal): string {
  const words = total === undefined ? [`${ended} done`] : [`${ended}/${total}`, percent(ended, total)];
  if (rate !== undefined) words.push(rate < 1 ? `${perItem(rate)} each` : `${perSecond(rate)}/s`);
  if (secondsLeft !== undefined) words.push(`${duration(secondsLeft)} left`);
  const share = total === undefined ? undefined : Math.min(1, ended / Math.max(1, total));
  const filled = Math.floor(BAR_WIDTH * (share ?? 0));
  const drawn = `${"█".repeat(filled)}${dim(terminal, "░".repeat(BAR_WIDTH - filled))} `;
  const faults = failed === 0 ? "" : `${failed} failed`;
  const all = [...words, ...(faults === "" ? [] : [faults])].join("  ");
  const room = terminal.columns - 1 - (share === undefined ? 0 : BAR_WIDTH + 1);
  // a line that wraps could not be drawn over
  const text = all.length > room ? all.slice(0, Math.max(0, room)) : all.replace(faults, () => red(terminal, faults));
  return `${share === undefined ? "" : drawn}${text}`;
}

function line({ ended, failed, total, rate, secondsLeft }: Count): string {
  const words = [total === undefined ? `${ended} done` : `${ended} of ${total} done (${percent(ended, total)})`];
  if (rate !== undefined) words.push(rate < 1 ? `${perItem(rate)} each` : `${perSecond(rate)} per second`);
  if (secondsLeft !== undefined) words.push(`${duration(secondsLeft)} left`);
  if (failed > 0) words.push(`${failed} failed`);
  return words.join(", ");
}

/** Whole percent, 100 with the last item alone. */
const percent = (ended: number, total: number): string =>
  `${total === 0 ? 100 : Math.min(100, Math.floor((100 * ended) / total))} %`;

/** "1.7 s", "42 s", "3 min 5 s" */
const perItem = (rate: number): string => (rate > 0.1 ? `${(1 / rate).toFixed(1)} s` : duration(1 / rate));

export const perSecond = (rate: number): string => (rate >= 100 ? rate.toFixed(0) : rate.toPrecision(2));

/** "42 s", "3 min 5 s", "2 h 10 min" */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
