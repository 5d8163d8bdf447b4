import type { LatentkitError } from "../errors.js";
import type { RunEvent } from "../graph/events.js";
import { printJson } from "../io/json/print.js";
import type { BatchEvent, BatchStatus } from "../render/batch/events.js";
import { plain, plainEvent } from "../render/plain.js";
import type { RenderResult } from "../render/result.js";
import type { BatchCounts } from "./batch/batch-summary.js";

/** An event of a run as one line of JSON; tensors and objects of the program are named, not printed. */
export function eventLine(event: RunEvent): string {
  return `${printJson(plainEvent(event))}\n`;
}

/** The last line where the graph or an option was refused: nothing ran. */
export function refusedLine(error: LatentkitError): string {
  return resultLine({ status: "failed", files: [], ui: {}, nodeMs: {}, leftOut: [], error });
}

/** The last line: what came of the run. */
export function resultLine(result: Omit<RenderResult, "outputs" | "warnings">): string {
  const { status, files, ui, nodeMs, leftOut, error } = result;
  const more = { ...(leftOut.length > 0 && { leftOut }), ...(error && { error }) };
  return `${printJson(plain({ type: "result", status, files, ui, nodeMs, ...more }))}\n`;
}

/** An event of a batch as one line of JSON. */
export const batchLine = (event: BatchEvent): string => `${printJson(plain(event))}\n`;

/** The last line: what came of the batch; `failures` has the first items that failed. */
export function batchResultLine(status: BatchStatus, counts: BatchCounts, more: object): string {
  const { done, partial, skipped, failed } = counts;
  const failures = counts.failures.map(({ index, error }) => ({ index, error }));
  return `${printJson(plain({ type: "result", status, done, ...(partial > 0 && { partial }), skipped, failed, failures, ...more }))}\n`;
}
