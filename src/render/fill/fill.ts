import { describe, LatentkitError } from "../../base/errors.js";
import { isObject } from "../../base/options.js";
import { isFrozenJson, keysInOrder, NumberLiteral, parseJson, rememberOrder } from "../../io/json/lossless.js";
import { type DefinitionOf, placeholders, replacePlaceholders, wholePlaceholder } from "./keys.js";
import { lackOfDigits } from "./seed-digits.js";
import { findInput, inputsOfKey } from "./targets.js";

// A text becomes a number or boolean if the input is one and the text is such a literal; digits are kept. Spreadsheets save
// TRUE.
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const LITERALS = { INT: NUMBER, FLOAT: NUMBER, BOOLEAN: /^(true|false)$/i };

type Graph = Record<string, unknown>;

/**
 * A copy of the graph, sharing nodes that are frozen, with values put in: "6.text" sets that input of node
 * 6, any other key fills the placeholder `{{key}}` wherever a string holds it, sets the primitive of that title, or the one
 * input of that common name. A string that is nothing but a placeholder becomes the value itself. Fails with usage.invalid
 * for a key that names none of these, for undefined, and for a seed that a program wrote as a float.
 */
export function fillGraph(graph: Graph, values: Readonly<Record<string, unknown>>, definitionOf: DefinitionOf): Graph {
  refuseShortenedSeeds(graph, values, definitionOf);
  const marks = placeholders(graph);
  const fills = new Map<string, unknown>();
  const sets: { nodeId: string; input: string; value: unknown }[] = [];
  for (const [key, value] of Object.entries(values)) {
    refuseNothing(key, value);
    if (marks.has(key)) {
      fills.set(key, value);
      continue;
    }
    sets.push({ ...findInput(graph, key, definitionOf, "set", marks), value });
  }
  const changed = new Set(sets.map(({ nodeId }) => nodeId));
  const order = keysInOrder(graph);
  const filled: Graph = {};
  for (const nodeId of order) {
    const node = graph[nodeId];
    const isSame = isObject(node) && isFrozenJson(node) && !changed.has(nodeId) && placeholders(node).size === 0;
    filled[nodeId] = isSame ? node : copy(node, (text) => fill(text, fills));
  }
  rememberOrder(filled, order);
  for (const { nodeId, input, value } of sets) {
    const inputs = (filled[nodeId] as { inputs: Graph }).inputs;
    rememberAdded(inputs, input, value);
  }
  for (const [nodeId, node] of Object.entries(filled)) {
    if (node !== graph[nodeId]) readNumbers(node, graph[nodeId], definitionOf);
  }
  return filled;
}

/** Fails with usage.invalid for undefined and functions: the graph's value would give way to a default, or to such a word. */
function refuseNothing(key: string, value: unknown): void {
  if (value !== undefined && typeof value !== "function" && typeof value !== "symbol") return;
  const received = describe(value);
  throw new LatentkitError("usage.invalid", `set ${key}: expected a value, received ${received}.`, { received });
}

/** Fails with usage.invalid for a value that lacks digits of a seed. */
function refuseShortenedSeeds(graph: Graph, values: Readonly<Record<string, unknown>>, definitionOf: DefinitionOf) {
  for (const [key, value] of Object.entries(values)) {
    // a program's numbers are refused at any input
    const lack = typeof value === "number" ? undefined : lackOfDigits(value);
    const inputs = lack === undefined ? [] : inputsOfKey(graph, key, definitionOf);
    const seed = "reason" in inputs ? undefined : inputs.find(({ isSeed }) => isSeed);
    if (seed === undefined) continue;
    const { nodeId, input } = seed;
    throw new LatentkitError("usage.invalid", `set ${key}: ${lack}.`, { nodeId, input, received: describe(value) });
  }
}

function fill(text: string, fills: ReadonlyMap<string, unknown>): unknown {
  const whole = wholePlaceholder(text);
  if (whole !== undefined && fills.has(whole)) return fills.get(whole);
  return replacePlaceholders(text, (mark, key) => (fills.has(key) ? inText(fills.get(key)) : mark));
}

function inText(value: unknown): string {
  if (value instanceof NumberLiteral) return value.text;
  if (value === null || typeof value === "object") {
    throw new LatentkitError("usage.invalid", `Cannot put ${describe(value)} into a text.`);
  }
  return String(value);
}

/** A string that was put in becomes a number or boolean if the input is one: the metadata shows 7, not "7". */
function readNumbers(node: unknown, original: unknown, definitionOf: DefinitionOf): void {
  if (!isObject(node) || !isObject(node.inputs)) return;
  const before = (original as { inputs: Graph }).inputs;
  const declared = definitionOf(String(node.class_type))?.inputs ?? {};
  for (const [name, value] of Object.entries(node.inputs)) {
    const type = Object.hasOwn(declared, name) ? declared[name]!.type : "";
    if (typeof value !== "string" || value === before[name] || !(type in LITERALS)) continue;
    const isLiteral = LITERALS[type as keyof typeof LITERALS].test(value);
    if (isLiteral) node.inputs[name] = parseJson(type === "BOOLEAN" ? value.toLowerCase() : value);
  }
}

function rememberAdded(inputs: Graph, input: string, value: unknown): void {
  const order = keysInOrder(inputs);
  inputs[input] = value;
  rememberOrder(inputs, order.includes(input) ? order : [...order, input]);
}

function copy(value: unknown, onText: (text: string) => unknown): unknown {
  if (typeof value === "string") return onText(value);
  if (Array.isArray(value)) return value.map((item) => copy(item, onText));
  if (!isObject(value) || value instanceof NumberLiteral) return value;
  const order = keysInOrder(value);
  const copied = Object.fromEntries(order.map((key) => [key, copy(value[key], onText)]));
  rememberOrder(copied, order);
  return copied;
}
