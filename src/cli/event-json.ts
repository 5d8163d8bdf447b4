import type { LatentkitError } from "../base/errors.js";
import type { RunEvent } from "../graph/events.js";
import { printJson } from "../io/json/print.js";
import type { BatchEvent } from "../render/batch/events.js";
import { plain, plainEvent } from "../render/plain.js";
import type { RunOutcome } from "../render/result.js";

/** An event of a run as one line of JSON; tensors and objects of the program are named, not printed. */
export function eventLine(event: RunEvent): string {
  return `${printJson(plainEvent(event))}\n`;
}

/** The last line where the graph or an option was refused: nothing ran. */
export function refusedLine(error: LatentkitError): string {
  return resultLine({ status: "failed", files: [], ui: {}, nodeMs: {}, warnings: [], leftOut: [], error });
}

/** The last line: what came of the run. */
export function resultLine(result: Omit<RunOutcome, "outputs">): string {
  const { status, files, ui, nodeMs, warnings, leftOut, error } = result;
  const more = { ...(leftOut.length > 0 && { leftOut }), ...(error && { error }) };
  return `${printJson(plain({ type: "result", status, files, ui, nodeMs, warnings, ...more }))}\n`;
}

/** An event of a batch as one line of JSON. */
export const batchLine = (event: BatchEvent): string => `${printJson(plain(event))}\n`;
