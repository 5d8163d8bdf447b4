import type { LatentkitError } from "../base/errors.js";
import type { RunEvent } from "../graph/events.js";
import { printJson } from "../io/json/print.js";
import { plainData, plainEvent } from "../render/plain.js";
import type { RunOutcome } from "../render/result.js";
import { BAR_WIDTH, barOf, EMPTY_LINE, type Terminal } from "./terminal.js";

export interface Progress {
  show(event: RunEvent): void;
  /** Removes the bar, so that other lines can follow. */
  clear(): void;
}

/** Progress of a run on stderr: a bar that redraws on a terminal, else a line for each node. */
export function createProgress(terminal: Terminal, labelOf: (nodeId: string) => string): Progress {
  return terminal.isTerminal ? createBar(terminal, labelOf) : createLines(terminal, labelOf);
}

function createLines(terminal: Terminal, labelOf: (nodeId: string) => string): Progress {
  let steps = 0;
  return {
    show(event) {
      if (event.type === "node-start") steps = 0;
      else if (event.type === "progress") steps = event.value;
      else if (event.type === "node-done") {
        const rate = steps > 0 ? `, ${steps} steps, ${rateOf(steps, event.ms)}` : "";
        terminal.err(`${labelOf(event.nodeId)}: ${event.ms.toFixed(1)} ms${rate}\n`);
        // the next node may end without a start
        steps = 0;
      }
    },
    clear: () => {},
  };
}

/** Iterations per second, as samplers are compared, or seconds per iteration if one takes longer. */
function rateOf(steps: number, ms: number): string {
  const seconds = Math.max(1e-3, ms / 1000);
  return steps > 0 && seconds > steps ? `${(seconds / steps).toFixed(1)} s/it` : `${(steps / seconds).toFixed(1)} it/s`;
}

function createBar(terminal: Terminal, labelOf: (nodeId: string) => string): Progress {
  let total = 0;
  let done = 0;
  let started = 0;
  const draw = (share: number, label: string) => {
    const filled = Math.round(BAR_WIDTH * Math.min(1, (done + share) / Math.max(1, total)));
    const room = Math.max(0, terminal.columns - BAR_WIDTH - 16);
    terminal.err(`${EMPTY_LINE}${barOf(terminal, filled)} ${done}/${total} ${label.slice(0, room)}`);
  };
  return {
    show(event) {
      if (event.type === "run-start") total = event.nodeIds.length;
      else if (event.type === "cached") done += event.nodeIds.length;
      else if (event.type === "node-start") {
        started = event.at;
        draw(0, labelOf(event.nodeId));
      } else if (event.type === "progress") {
        const { nodeId, value, max, at } = event;
        draw(value / Math.max(1, max), `${labelOf(nodeId)} ${value}/${max} ${rateOf(value, at - started)}`);
      } else if (event.type === "node-done") done++;
    },
    clear: () => terminal.err(EMPTY_LINE),
  };
}

/** An event of a run as one line of JSON; tensors and objects of the program are named, not printed. */
export function eventLine(event: RunEvent): string {
  return `${printJson(plainEvent(event))}\n`;
}

/** The last line if the graph or an option was refused: nothing ran. */
export function refusedLine(error: LatentkitError): string {
  return resultLine({ status: "failed", files: [], ui: {}, nodeMs: {}, warnings: [], leftOut: [], error });
}

/** The last line: what came of the run. */
export function resultLine(result: Omit<RunOutcome, "outputs">): string {
  const { status, files, ui, nodeMs, warnings, leftOut, error } = result;
  const more = { ...(leftOut.length > 0 && { leftOut }), ...(error && { error }) };
  return `${printJson(plainData({ type: "result", status, files, ui, nodeMs, warnings, ...more }))}\n`;
}
