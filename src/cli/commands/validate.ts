import { LatentkitError } from "../../base/errors.js";
import type { Validation } from "../../graph/validate.js";
import { type GraphError, promptError } from "../../graph/validation/graph-error.js";
import type { Host } from "../../host/types.js";
import { printJson } from "../../io/json/print.js";
import { validateGraph } from "../../render/defaults.js";
import { readGraph } from "../../render/source.js";
import { type Arguments, type Command, idList, pair } from "../command.js";
import { hostOptions, openHost } from "../host.js";
import { networkOf } from "../render-options.js";
import { harmless, oneLine } from "../terminal.js";

const INVALID = 2;

// decision 13
export const validateCommand: Command = {
  usage: "validate GRAPH",
  summary: "Check a graph without running it.",
  help: [
    "  --targets IDS    nodes to compute, separated by commas (the graph's output nodes)",
    "  --input DIR      folder of the input images (input beside the graph, else ./input)",
    "  --models DIR     ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
    "  --alias OLD=NEW  run nodes of class OLD (or of prefix OLD) as NEW; repeatable",
    "  --partial        accept outputs that cannot be computed, as render --partial does",
    "  --offline        refuse a graph whose nodes use the network or a key",
    "  --json           print one JSON object, in the format of ComfyUI's response",
  ],
  options: {
    targets: { type: "string" },
    input: { type: "string" },
    ...hostOptions,
    alias: { type: "string", multiple: true },
    partial: { type: "boolean" },
    offline: { type: "boolean" },
    json: { type: "boolean" },
  },
  positionals: { min: 1, max: 1 },
  run: async (args, terminal) => {
    const path = args.positionals[0]!;
    const verdict = verdictOf(path, args, await openHost(args.values("models"), terminal));
    // the JSON is ComfyUI's response, for which one valid output is enough; the exit code is that of render
    const canRun = verdict.ok && (args.flag("partial") || Object.keys(verdict.nodeErrors).length === 0);
    if (args.flag("json")) terminal.out(`${printJson(verdict)}\n`);
    else terminal.out(`${harmless(report(oneLine(path), verdict, canRun).join("\n"))}\n`);
    return canRun ? 0 : INVALID;
  },
};

/** Validates the graph; a file that cannot be parsed is a verdict too. */
function verdictOf(path: string, args: Arguments, host: Host | undefined): Validation {
  const options = {
    host,
    targets: idList(args.value("targets")),
    allowNetwork: networkOf(args),
    classAliases: Object.fromEntries(args.values("alias").map((text) => pair("alias", text))),
  };
  try {
    const { graph, inputDir } = readGraph(path, { classAliases: options.classAliases });
    return validateGraph(graph, { ...options, inputDir: args.value("input") ?? inputDir });
  } catch (error) {
    if (!(error instanceof LatentkitError) || !error.code.startsWith("graph.")) throw error;
    return { ok: false, error: promptError(error), nodeErrors: {}, warnings: [] };
  }
}

function report(path: string, verdict: Validation, canRun: boolean): string[] {
  const faults = Object.values(verdict.nodeErrors).flatMap(({ errors }) => errors.map(sentenceOf));
  const warnings = verdict.warnings.map(({ message }) => `Warning: ${message}`);
  if (verdict.ok && canRun) {
    const others = faults.length === 0 ? "" : " The other outputs are left out:";
    return [`${path} can run and computes ${verdict.outputs.join(", ")}.${others}`, ...faults, ...warnings];
  }
  if (verdict.ok) {
    const hint = `With --partial it can run and computes ${verdict.outputs.join(", ")}.`;
    return [`${path} cannot run.`, ...faults, hint, ...warnings];
  }
  return [`${path} cannot run.`, ...(faults.length === 0 ? [sentenceOf(verdict.error)] : faults), ...warnings];
}

function sentenceOf({ sentence, suggestion }: GraphError): string {
  return suggestion === undefined || sentence.includes(suggestion)
    ? sentence
    : `${sentence} Did you mean "${suggestion}"?`;
}
