import type { RunEvent } from "../graph/events.js";
import { dim, type Terminal } from "./terminal.js";

const BAR_WIDTH = 24;

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
  return {
    show(event) {
      if (event.type === "node-done") terminal.err(`${labelOf(event.nodeId)}: ${event.ms.toFixed(1)} ms\n`);
    },
    clear: () => {},
  };
}

function createBar(terminal: Terminal, labelOf: (nodeId: string) => string): Progress {
  let total = 0;
  let done = 0;
  const draw = (share: number, label: string) => {
    const filled = Math.round(BAR_WIDTH * Math.min(1, (done + share) / Math.max(1, total)));
    const bar = `${"█".repeat(filled)}${dim(terminal, "░".repeat(BAR_WIDTH - filled))}`;
    const room = Math.max(0, terminal.columns - BAR_WIDTH - 16);
    terminal.err(`\r\x1b[2K${bar} ${done}/${total} ${label.slice(0, room)}`);
  };
  return {
    show(event) {
      if (event.type === "run-start") total = event.nodeIds.length;
      else if (event.type === "cached") done += event.nodeIds.length;
      else if (event.type === "node-start") draw(0, labelOf(event.nodeId));
      else if (event.type === "progress") draw(event.value / Math.max(1, event.max), labelOf(event.nodeId));
      else if (event.type === "node-done") done++;
    },
    clear: () => terminal.err("\r\x1b[2K"),
  };
}
