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
  let steps = 0;
  return {
    show(event) {
      if (event.type === "node-start") steps = 0;
      else if (event.type === "progress") steps = event.value;
      else if (event.type === "node-done") {
        const rate = steps > 0 ? `, ${steps} steps, ${perSecond(steps, event.ms)}` : "";
        terminal.err(`${labelOf(event.nodeId)}: ${event.ms.toFixed(1)} ms${rate}\n`);
        // the next node may end without a start
        steps = 0;
      }
    },
    clear: () => {},
  };
}

/** Iterations per second, as samplers are compared. */
const perSecond = (steps: number, ms: number): string => `${(steps / Math.max(1e-3, ms / 1000)).toFixed(1)} it/s`;

function createBar(terminal: Terminal, labelOf: (nodeId: string) => string): Progress {
  let total = 0;
  let done = 0;
  let started = 0;
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
      else if (event.type === "node-start") {
        started = event.at;
        draw(0, labelOf(event.nodeId));
      } else if (event.type === "progress") {
        const { nodeId, value, max, at } = event;
        draw(value / Math.max(1, max), `${labelOf(nodeId)} ${value}/${max} ${perSecond(value, at - started)}`);
      } else if (event.type === "node-done") done++;
    },
    clear: () => terminal.err("\r\x1b[2K"),
  };
}
