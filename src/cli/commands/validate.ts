import { LatentkitError } from "../../base/errors.js";
import type { Validation } from "../../graph/validate.js";
import { type GraphError, promptError } from "../../graph/validation/graph-error.js";
import type { Host } from "../../host/host.js";
import { printJson } from "../../io/json/print.js";
import { registry } from "../../nodes/index.js";
import { readGraph } from "../../render/source.js";
import { validateGraph } from "../../render/surroundings.js";
import { networkOf, openHost } from "../host.js";
import type { ArgumentsOf, Run } from "../table/commands.js";
import { harmless, oneLine } from "../terminal.js";

const INVALID = 2;
const HERE = "The graph cannot run here: ";

// Exits as render would; the JSON is ComfyUI's response, for which one good output is enough.
export const run: Run<"validate"> = async (args, terminal) => {
  const path = args.get("GRAPH");
  const verdict = verdictOf(path, args, await openHost({ folders: args.get("models") }, terminal));
  // the JSON is ComfyUI's response, for which one valid output is enough; the exit code is that of render
  const canRun = verdict.ok && (args.get("partial") || Object.keys(verdict.nodeErrors).length === 0);
  if (args.get("json")) terminal.out(`${printJson(verdict)}\n`);
  else {
    const hint = hostHint(verdict, args.get("models").length > 0);
    terminal.out(`${harmless([...report(oneLine(path), verdict, canRun), ...hint].join("\n"))}\n`);
  }
  return canRun ? 0 : INVALID;
};

/** Validates the graph; a file that cannot be parsed is a verdict too. */
function verdictOf(path: string, args: ArgumentsOf<"validate">, host: Host | undefined): Validation {
  const options = {
    host,
    targets: args.get("targets"),
    allowNetwork: networkOf(args),
    classAliases: args.get("alias"),
  };
  try {
    const { graph, inputDir } = readGraph(path, options);
    return validateGraph(graph, { ...options, inputDir: args.get("input") ?? inputDir });
  } catch (error) {
    if (!(error instanceof LatentkitError) || !error.code.startsWith("graph.")) throw error;
    return { ok: false, error: promptError(error), nodeErrors: {}, warnings: [] };
  }
}

function report(path: string, verdict: Validation, canRun: boolean): string[] {
  const faults = Object.values(verdict.nodeErrors).flatMap(({ errors }) => errors.map(sentenceOf));
  const warnings = verdict.warnings.map(({ message }) => `Warning: ${message}`);
  const sentences = faults.length === 0 && !verdict.ok ? [sentenceOf(verdict.error)] : faults;
  // what no change of the graph's values helps comes first
  const here = sentences.filter((sentence) => sentence.startsWith(HERE));
  const others = sentences.filter((sentence) => !sentence.startsWith(HERE));
  const cannot = here.length === 0 ? [`${path} cannot run.`] : here.map((one) => one.replace("The graph", () => path));
  if (!verdict.ok) return [...cannot, ...others, ...warnings];
  const { outputs } = verdict;
  const computes = `can run and computes ${outputs.length === 1 ? "node" : "nodes"} ${outputs.join(", ")}.`;
  if (!canRun) return [...cannot, ...others, `With --partial it ${computes}`, ...warnings];
  return [
    `${path} ${computes}${faults.length === 0 ? "" : " The other outputs are left out:"}`,
    ...faults,
    ...warnings,
  ];
}

function sentenceOf({ sentence, suggestion, received }: GraphError): string {
  const key = PLACEHOLDER.exec(received ?? "")?.[1];
  if (key !== undefined) return `${sentence} It is a placeholder: render fills it with --set ${key}=VALUE.`;
  return suggestion === undefined || sentence.includes(suggestion)
    ? sentence
    : `${sentence} Did you mean "${suggestion}"?`;
}

/** A described text that is all placeholder. */
const PLACEHOLDER = /^"\{\{ ?([\w.-]{1,64}) ?\}\}"$/;

/** A sentence about names that the preview host was asked for; undefined if the caller brought models. */
function hostHint({ nodeErrors }: Validation, hasModels: boolean): string[] {
  const isFile = ({ code, input }: GraphError, classType: string): boolean => {
    const files = registry.get(classType)?.inputs[input ?? ""]?.files;
    return (
      (code === "input.not-in-list" && files === "checkpoints") || (code === "host.missing" && files !== undefined)
    );
  };
  const errors = Object.values(nodeErrors);
  if (hasModels || !errors.some((node) => node.errors.some((error) => isFile(error, node.class_type)))) return [];
  return ["These names were checked against the preview host; use --models DIR to check them against your own files."];
}
