import { LatentkitError } from "../../base/errors.js";
import type { RunEvent } from "../../graph/events.js";
import { type ClassAliases, parseGraph } from "../../graph/parse.js";
import { pythonText } from "../../io/python-text.js";
import { renderOutcome } from "../../render/render.js";
import type { RunOutcome } from "../../render/result.js";
import { readGraph } from "../../render/source.js";
import { batchHelp, batchOptions, isBatch } from "../batch/batch-options.js";
import type { CreateStoreRunners } from "../batch/render-batch.js";
import type { Arguments, Command } from "../command.js";
import { eventLine, refusedLine, resultLine } from "../event-json.js";
import { hostHelp, networkHelp, networkOptions } from "../host.js";
import { createProgress } from "../progress.js";
import { renderOptions, shortest } from "../render-options.js";
import { harmless, oneLine, red, type Terminal } from "../terminal.js";

const INTERRUPTED = 130;

export const renderCommand = (storeRunners: CreateStoreRunners): Command => ({
  usage: "render GRAPH",
  summary: "Render a graph, once or many times, and print the files it writes.",
  help: [
    "  --set KEY=VALUE    6.text=… sets an input of node 6, any other key fills {{key}}; repeatable;",
    "                     prompt, negative, seed, steps, width and height are the one input of that name;",
    "                     5.seed=random draws a seed",
    "  --targets IDS      nodes to compute, separated by commas (the graph's output nodes)",
    "  --out DIR          folder for the files (./out)",
    "  --input DIR        folder of the input images (input beside the graph, else ./input)",
    ...hostHelp,
    ...networkHelp(21),
    "  --config FILE      configuration, YAML or JSON",
    "  --device DEVICE    device for tensors: auto, cpu or cuda:N (auto)",
    "  --format TYPE      format of the pictures: png, webp, jpeg or avif (png)",
    "  --quality N        quality of webp, jpeg and avif files, 1 to 100 (90)",
    "  --lossless         keep every pixel of webp and avif files",
    "  --bits BITS        bits of a sample of png files, 8 or 16 (8)",
    "  --metadata POLICY  metadata in pictures: full, prompt or none (full)",
    "  --parameters       add the line of settings that A1111 writes",
    "  --redact KEY       hide a value in pictures: 6.text, or a key at any depth; repeatable",
    "  --partial          leave out outputs that cannot be computed, instead of refusing the graph",
    "  --offline          refuse a graph whose nodes use the network or a key",
    "  --alias OLD=NEW    run nodes of class OLD (or of prefix OLD) as NEW; repeatable",
    "  --json             print one event a line on stdout, the result last",
    "  --quiet            print no progress",
    "",
    ...batchHelp,
  ],
  options: {
    set: { type: "string", multiple: true },
    targets: { type: "string" },
    out: { type: "string" },
    input: { type: "string" },
    ...networkOptions,
    config: { type: "string" },
    device: { type: "string" },
    format: { type: "string" },
    quality: { type: "string" },
    lossless: { type: "boolean" },
    bits: { type: "string" },
    metadata: { type: "string" },
    parameters: { type: "boolean" },
    redact: { type: "string", multiple: true },
    alias: { type: "string", multiple: true },
    partial: { type: "boolean" },
    offline: { type: "boolean" },
    json: { type: "boolean" },
    quiet: { type: "boolean" },
    ...batchOptions,
  },
  // an argument that is neither an option nor a graph is the picture's name
  bare: { "contact-sheet": /^(?!-)(?!.*\.json$)./is, grid: /^(?!-)(?!.*\.json$)./is, store: /^[a-z]{2,}:/i },
  positionals: { min: 1, max: 1 },
  run: async (args, terminal, signal, urgent) => {
    if (isBatch(args))
      return await (await import("../batch/render-batch.js")).renderBatch(args, terminal, signal, urgent, storeRunners);
    const started = performance.now();
    const path = args.positionals[0]!;
    const result = args.flag("json")
      ? await runJson(path, args, terminal, signal)
      : await runText(path, args, terminal, signal);
    if (result.status === "interrupted") {
      terminal.err("Interrupted.\n");
      return INTERRUPTED;
    }
    if (result.status === "failed") {
      terminal.err(`${red(terminal, "latentkit:")} ${harmless(result.error?.message ?? "The run failed.")}\n`);
      return result.error?.meaning.exit ?? 1;
    }
    if (!args.flag("quiet") && !args.flag("json")) {
      const seconds = ((performance.now() - started) / 1000).toFixed(2);
      terminal.err(`${result.files.length} ${result.files.length === 1 ? "file" : "files"} in ${seconds} s\n`);
    }
    return 0;
  },
});

async function runJson(path: string, args: Arguments, terminal: Terminal, signal: AbortSignal): Promise<RunOutcome> {
  try {
    const onEvent = (event: RunEvent) => terminal.out(eventLine(event));
    const result = await renderOutcome(path, { ...(await renderOptions(args, terminal, signal)), onEvent });
    terminal.out(resultLine(result));
    return result;
  } catch (error) {
    if (error instanceof LatentkitError) terminal.out(refusedLine(error));
    throw error;
  }
}

async function runText(path: string, args: Arguments, terminal: Terminal, signal: AbortSignal): Promise<RunOutcome> {
  const options = await renderOptions(args, terminal, signal);
  const labelOf = labels(path, options.classAliases);
  const progress = args.flag("quiet") ? undefined : createProgress(terminal, labelOf);
  const onEvent = (event: RunEvent) => progress?.show(event);
  const result = await renderOutcome(path, { ...options, onEvent });
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

function labels(path: string, classAliases: ClassAliases): (nodeId: string) => string {
  const graph = parseGraph(readGraph(path, { classAliases }).graph).prompt as Record<
    string,
    { class_type?: unknown } | undefined
  >;
  return (nodeId) => {
    const type = Object.hasOwn(graph, nodeId) ? graph[nodeId]?.class_type : undefined;
    return oneLine(typeof type === "string" ? `${nodeId} ${type}` : nodeId);
  };
}
