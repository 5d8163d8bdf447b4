import { LatentkitError } from "../../base/errors.js";
import { suggest } from "../../base/suggest.js";
import { printJson } from "../../io/json/print.js";
import type { NodeDefinition } from "../../nodes/define.js";
import { describeNode } from "../../nodes/describe.js";
import type { InputSpec } from "../../nodes/inputs.js";
import { choicesOf } from "../../nodes/values.js";
import { defaultHost, defaultRegistry } from "../../render/surroundings.js";
import type { Run } from "../table/commands.js";
import type { Terminal } from "../terminal.js";

const MAX_LISTED_CHOICES = 60;

export const run: Run<"nodes"> = async (args, terminal) => {
  const key = args.get("KEY");
  const nodes = key === undefined ? allNodes() : [findNode(key)];
  if (args.get("json")) {
    const descriptions = nodes.map((node) => [node.key, describeNode(node, { host: defaultHost })] as const);
    terminal.out(`${printJson(Object.fromEntries(descriptions))}\n`);
  } else if (key === undefined) table(nodes, terminal);
  else describeOne(nodes[0]!, terminal);
  return 0;
};

function allNodes(): NodeDefinition[] {
  return defaultRegistry.keys().map((key) => defaultRegistry.get(key)!);
}

function findNode(key: string): NodeDefinition {
  const node = defaultRegistry.get(key);
  if (node !== undefined) return node;
  // the editor shows names, and graphs have keys
  const named = allNodes().find(({ displayName }) => displayName.toLowerCase() === key.toLowerCase());
  const { suggestion, hint } = suggest(named?.key ?? key, defaultRegistry.keys(), (near) => `"${near}"`);
  const help = hint === "" ? ' "latentkit nodes" lists all nodes.' : hint;
  throw new LatentkitError("usage.invalid", `Unknown node "${key}".${help}`, { suggestion });
}

function table(nodes: readonly NodeDefinition[], terminal: Terminal): void {
  const width = Math.max(...nodes.map(({ key }) => key.length));
  for (const node of nodes) {
    const names = Object.entries(node.inputs).map(([name, spec]) => (spec.optional ? `[${name}]` : name));
    const outputs = node.outputs.map(({ name }) => name).join(", ");
    terminal.out(`${node.key.padEnd(width)}  ${names.join(", ") || "-"} -> ${outputs || "-"}\n`);
  }
}

function describeOne(node: NodeDefinition, terminal: Terminal): void {
  const notes = [
    node.category,
    ...(node.outputNode ? ["output node"] : []),
    ...(node.inputIsList ? ["takes whole lists"] : []),
  ];
  const lines = [`${node.key}  (${notes.join(", ")})`, ...(node.description === "" ? [] : [node.description])];
  const rows = Object.entries(node.inputs).map(([name, spec]) => [name, spec.type, about(spec)] as const);
  lines.push("Inputs:", ...columns(rows));
  lines.push("Outputs:", ...columns(node.outputs.map(({ name, type, list }) => [name, type, list ? "list" : ""])));
  const hidden = Object.entries(node.hidden).map(([name, type]) => [name, type, ""] as const);
  if (hidden.length > 0) lines.push("Hidden:", ...columns(hidden));
  terminal.out(`${lines.join("\n")}\n`);
}

function columns(rows: readonly (readonly [string, string, string])[]): string[] {
  if (rows.length === 0) return ["  none"];
  const [first, second] = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map(([name, type, rest]) => `  ${name.padEnd(first!)}  ${type.padEnd(second!)}  ${rest}`.trimEnd());
}

function about(spec: InputSpec): string {
  const { default: fallback, min, max, tooltip } = spec.options;
  const choices = choicesOf(spec, { host: defaultHost }) ?? [];
  const listed = choices.slice(0, MAX_LISTED_CHOICES).join(" | ");
  const parts = [
    spec.optional ? "optional" : "",
    spec.lazy ? "lazy" : "",
    fallback === undefined ? "" : `default ${JSON.stringify(fallback)}`,
    min === undefined ? "" : `from ${min}`,
    max === undefined ? "" : `to ${max}`,
    choices.length > MAX_LISTED_CHOICES ? `${listed} | … (${choices.length})` : listed,
    tooltip ?? "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}
