import type { BatchEvent } from "../../render/batch/events.js";
import { dim, red, type Terminal } from "../terminal.js";

const BAR_WIDTH = 24;
const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 10_000;
/** Also where nothing happens for a while. */
const TICK_MS = 500;

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
  /** Items a second; undefined before the first has ended. */
  readonly rate: number | undefined;
  readonly secondsLeft: number | undefined;
}

function createTally(now: () => number) {
  let [done, failed, skipped, started] = [0, 0, 0, 0];
  let total: number | undefined;
  let isRunning = false;
  return {
    get isRunning() {
      return isRunning;
    },
    add(event: BatchEvent) {
      if (event.type === "batch-start") {
        ({ total } = event);
        started = now();
        isRunning = true;
      } else if (event.type === "item-done") done++;
      else if (event.type === "item-skipped") skipped++;
      else if (event.type === "item-failed" && !event.willRetry) failed++;
      else if (event.type === "batch-done") isRunning = false;
    },
    read(): Count {
      const ended = done + failed;
      const seconds = (now() - started) / 1000;
      const rate = ended > 0 && seconds > 0 ? ended / seconds : undefined;
      const left = total === undefined ? undefined : Math.max(0, total - ended - skipped);
      const secondsLeft = left === undefined || rate === undefined ? undefined : left / rate;
      return { ended: ended + skipped, failed, total, rate, secondsLeft };
    },
  };
}

function bar({ ended, failed, total, rate, secondsLeft }: Count, terminal: Terminal): string {
  const words = [total === undefined ? `${ended} done` : `${ended}/${total}`];
  if (rate !== undefined) words.push(`${perSecond(rate)}/s`);
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
  const words = [`${ended}${total === undefined ? "" : ` of ${total}`} done`];
  if (rate !== undefined) words.push(`${perSecond(rate)} per second`);
  if (secondsLeft !== undefined) words.push(`${duration(secondsLeft)} left`);
  if (failed > 0) words.push(`${failed} failed`);
  return words.join(", ");
}

export const perSecond = (rate: number): string => (rate >= 100 ? rate.toFixed(0) : rate.toPrecision(2));

/** "42 s", "3 min 5 s", "2 h 10 min" */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
