import type { LatentkitError } from "../errors.js";
import type { RunEvent } from "../graph/events.js";
import { printJson } from "../io/json-print.js";
import { plain, plainEvent } from "../render/plain.js";
import type { RenderResult } from "../render/render.js";

/** An event of a run as one line of JSON; tensors and objects of the program are named, not printed. */
export function eventLine(event: RunEvent): string {
  return `${printJson(plainEvent(event))}\n`;
}

/** The last line where the graph or an option was refused: nothing ran. */
export function refusedLine(error: LatentkitError): string {
  return resultLine({ status: "failed", files: [], ui: {}, nodeMs: {}, error });
}

/** The last line: what came of the run. */
export function resultLine({ status, files, ui, nodeMs, error }: Omit<RenderResult, "outputs" | "warnings">): string {
  return `${printJson(plain({ type: "result", status, files, ui, nodeMs, ...(error && { error }) }))}\n`;
}
