import { LatentkitError } from "../../base/errors.js";
import type { RunEvent } from "../../graph/events.js";
import { parseGraph } from "../../graph/parse.js";
import { pythonText } from "../../io/python-text.js";
import { renderOutcome } from "../../render/render.js";
import type { RunOutcome } from "../../render/result.js";
import type { GraphSource } from "../../render/source.js";
import { renderOptions } from "../render-options.js";
import { createProgress, eventLine, refusedLine, resultLine } from "../run-report.js";
import { type ArgumentsOf, BATCH_OPTIONS, type Run } from "../table/commands.js";
import { harmless, INTERRUPTED, oneLine, red, shortest, type Terminal } from "../terminal.js";

type RenderArguments = ArgumentsOf<"render">;

export const run: Run<"render"> = async (args, terminal, signal, urgent) => {
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
