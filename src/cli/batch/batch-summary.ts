import type { LatentkitError } from "../../base/errors.js";
import { printJson } from "../../io/json/print.js";
import type { BatchEvent, BatchStatus } from "../../render/batch/events.js";
import { plain } from "../../render/plain.js";
import { duration, perSecond } from "./batch-progress.js";

/** Failed items that the result names; each has an event of its own. */
const MAX_NAMED = 20;

/** Counts of a batch so far. */
export interface BatchCounts {
  readonly done: number;
  /** Number of done items that were rendered without some outputs. */
  readonly partial: number;
  readonly skipped: number;
  readonly failed: number;
  /** The first ones that failed. */
  readonly failures: readonly Failure[];
}

interface Failure {
  readonly index: number;
  readonly error: LatentkitError;
}

/** Counts a batch's events, in bounded memory. */
export interface Summary {
  add(event: BatchEvent): void;
  read(): BatchCounts;
}

export function createSummary(): Summary {
  const failures: Failure[] = [];
  const counts = { done: 0, partial: 0, skipped: 0, failed: 0, failures };
  return {
    read: () => counts,
    add(event) {
      if (event.type === "item-done") {
        counts.done++;
        if (event.leftOut !== undefined) counts.partial++;
      } else if (event.type === "item-skipped") counts.skipped++;
      else if (event.type === "item-failed" && !event.willRetry) {
        counts.failed++;
        if (failures.length < MAX_NAMED) failures.push({ index: event.index, error: event.error });
      }
    },
  };
}

/** "12 done, 3 failed, 5 skipped in 8.02 s (1.9 per second)" */
export function summaryLine({ done, partial, failed, skipped }: BatchCounts, ms: number): string {
  const words = [`${done} done${partial > 0 ? ` (${partial} without some outputs)` : ""}`];
  if (failed > 0) words.push(`${failed} failed`);
  if (skipped > 0) words.push(`${skipped} skipped`);
  const rate = done + failed > 0 ? ` (${perSecond((done + failed) / (ms / 1000))} per second)` : "";
  const time = ms < 10_000 ? `${(ms / 1000).toFixed(2)} s` : duration(ms / 1000);
  return `${words.join(", ")} in ${time}${rate}`;
}

/** Last line of `--json`: outcome of the batch; `failures` has the first items that failed. */
export function batchResultLine(status: BatchStatus, counts: BatchCounts, more: object): string {
  const { done, partial, skipped, failed } = counts;
  const failures = counts.failures.map(({ index, error }) => ({ index, error }));
  return `${printJson(plain({ type: "result", status, done, ...(partial > 0 && { partial }), skipped, failed, failures, ...more }))}\n`;
}
