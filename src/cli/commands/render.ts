import { LatentkitError } from "../../base/errors.js";
import type { RunEvent } from "../../graph/events.js";
import { parseGraph } from "../../graph/parse.js";
import { printJson } from "../../io/json/print.js";
import { pythonText } from "../../io/python-text.js";
import { plainData, plainEvent } from "../../render/plain.js";
import { renderOutcome } from "../../render/render.js";
import type { RunOutcome } from "../../render/result.js";
import type { GraphSource } from "../../render/source.js";
import { renderOptions } from "../render-options.js";
import { type ArgumentsOf, BATCH_OPTIONS, type Run } from "../table/commands.js";
import {
  BAR_WIDTH,
  barOf,
  EMPTY_LINE,
  harmless,
  INTERRUPTED,
  oneLine,
  red,
  shortest,
  type Terminal,
} from "../terminal.js";

type RenderArguments = ArgumentsOf<"render">;

export const run: Run<"render"> = async (args, terminal, signal, urgent) => {
  try {
    return await render(args, terminal, signal, urgent);
  } catch (error) {
    throw withKey(error, args);
  }
};

/** An error of a value that the graph has and no list, with the option that sets another; any other error as it is. */
function withKey(error: unknown, args: RenderArguments): unknown {
  if (!(error instanceof LatentkitError) || error.code !== "input.not-in-list") return error;
  const { nodeId, input, expected = "" } = error.details;
  const key = `${nodeId}.${input}`;
  // without any choice there is nothing to set
  if (/\((?:none|this input has nothing)/.test(expected) || Object.hasOwn(args.get("set"), key)) return error;
  return new LatentkitError(error.code, `${error.message} --set ${key}=… sets another ${input}.`, error.details, {
    cause: error,
  });
}

const render: Run<"render"> = async (args, terminal, signal, urgent) => {
  if (isBatch(args)) {
    const { renderBatch } = await import("../batch/render-batch.js");
    return await renderBatch(args, terminal, signal, urgent);
  }
  const started = performance.now();
  const result = args.get("json") ? await runJson(args, terminal, signal) : await runText(args, terminal, signal);
  if (result.status === "interrupted") {
    terminal.err("Interrupted.\n");
    return INTERRUPTED;
  }
  if (result.status === "failed") {
    terminal.err(`${red(terminal, "latentkit:")} ${harmless(result.error?.message ?? "The run failed.")}\n`);
    return result.error?.meaning.exit ?? 1;
  }
  if (!args.get("quiet") && !args.get("json")) {
    const seconds = ((performance.now() - started) / 1000).toFixed(2);
    terminal.err(`${result.files.length} ${result.files.length === 1 ? "file" : "files"} in ${seconds} s\n`);
  }
  return 0;
};

const isBatch = (args: RenderArguments): boolean =>
  Object.keys(BATCH_OPTIONS).some((name) => args.has(name as keyof typeof BATCH_OPTIONS));

async function runJson(args: RenderArguments, terminal: Terminal, signal: AbortSignal): Promise<RunOutcome> {
  try {
    const onEvent = (event: RunEvent) => terminal.out(eventLine(event));
    const { options } = await renderOptions(args, terminal, signal);
    const result = await renderOutcome(args.get("GRAPH"), { ...options, onEvent });
    terminal.out(resultLine(result));
    return result;
  } catch (error) {
    if (error instanceof LatentkitError) terminal.out(refusedLine(error));
    throw error;
  }
}

async function runText(args: RenderArguments, terminal: Terminal, signal: AbortSignal): Promise<RunOutcome> {
  const { source, options } = await renderOptions(args, terminal, signal);
  const labelOf = labels(source);
  const progress = args.get("quiet") ? undefined : createProgress(terminal, labelOf);
  const onEvent = (event: RunEvent) => progress?.show(event);
  const result = await renderOutcome(args.get("GRAPH"), { ...options, onEvent });
  progress?.clear();
  for (const warning of result.warnings) terminal.err(`Warning: ${harmless(warning)}\n`);
  if (progress !== undefined) printTexts(result, labelOf, terminal);
  for (const file of result.files) terminal.out(`${shortest(file.path)}\n`);
  return result;
}

/** Prints the texts that nodes show, with the node's label. */
function printTexts({ ui }: RunOutcome, labelOf: (nodeId: string) => string, terminal: Terminal): void {
  for (const [nodeId, { text = [] }] of Object.entries(ui)) {
    for (const item of text) if (item !== "") terminal.err(`${labelOf(nodeId)} shows: ${harmless(pythonText(item))}\n`);
  }
}

/** Label of a node by its id. */
function labels(source: GraphSource): (nodeId: string) => string {
  const graph = parseGraph(source.graph).prompt as Record<string, { class_type?: unknown } | undefined>;
  return (nodeId) => {
    const type = Object.hasOwn(graph, nodeId) ? graph[nodeId]?.class_type : undefined;
    return oneLine(typeof type === "string" ? `${nodeId} ${type}` : nodeId);
  };
}

interface Progress {
  show(event: RunEvent): void;
  /** Removes the bar, so that other lines can follow. */
  clear(): void;
}

/** Progress of a run on stderr: a bar that redraws on a terminal, else a line for each node. @internal */
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
    const text = ` ${done}/${total} ${label}`.slice(0, Math.max(0, terminal.columns - 1 - BAR_WIDTH));
    terminal.err(`${EMPTY_LINE}${barOf(terminal, filled)}${text}`);
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
function eventLine(event: RunEvent): string {
  return `${printJson(plainEvent(event))}\n`;
}

/** The last line if the graph or an option was refused: nothing ran. */
function refusedLine(error: LatentkitError): string {
  return resultLine({ status: "failed", files: [], ui: {}, nodeMs: {}, warnings: [], leftOut: [], error });
}

/** The last line: what came of the run. */
function resultLine(result: Omit<RunOutcome, "outputs">): string {
  const { status, files, ui, nodeMs, warnings, leftOut, error } = result;
  const more = { ...(leftOut.length > 0 && { leftOut }), ...(error && { error }) };
  return `${printJson(plainData({ type: "result", status, files, ui, nodeMs, warnings, ...more }))}\n`;
}
