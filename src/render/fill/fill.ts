import { describe, LatentkitError, suggest } from "../../base/errors.js";
import { titleOf } from "../../graph/unknown-classes.js";
import { isFrozenJson, keysInOrder, NumberLiteral, parseJson, recall, rememberOrder } from "../../io/json/lossless.js";
import {
  COMMON_NAMES,
  type DefinitionOf,
  inputsByCommonName,
  nodesTitled,
  PRIMITIVE_INPUT,
  placeholderKeys,
  readDottedKey,
  replacePlaceholders,
  titledPrimitives,
  wholePlaceholder,
} from "./keys.js";
import { createSeedTest, lackOfDigits } from "./seed-digits.js";

// A text becomes a number or boolean if the input is one and the text is such a literal; digits are kept.
// decisions: A misspelt name is an error
/** Inputs that a message names. */
const MAX_NAMED = 8;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const LITERALS = { INT: NUMBER, FLOAT: NUMBER, BOOLEAN: /^(true|false)$/ };

type Graph = Record<string, unknown>;

/**
 * A copy of the graph, sharing nodes that are frozen, with values put in: "6.text" sets that input of node
 * 6, any other key fills the placeholder `{{key}}` wherever a string holds it, sets the primitive of that title, or the one
 * input of that common name. A string that is nothing but a placeholder becomes the value itself. Fails with usage.invalid
 * for a key that names none of these, and for a seed that a program wrote as a float.
 */
export function fillGraph(graph: Graph, values: Readonly<Record<string, unknown>>, definitionOf: DefinitionOf): Graph {
  refuseShortenedSeeds(graph, values, definitionOf);
  const marks = placeholders(graph);
  const fills = new Map<string, unknown>();
  const sets: { nodeId: string; input: string; value: unknown }[] = [];
  for (const [key, value] of Object.entries(values)) {
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

/**
 * Node and input that a dotted key names; node ids and input names may hold dots themselves. Fails with usage.invalid,
 * whose message begins with the verb.
 */
export function findInput(
  graph: Graph,
  key: string,
  definitionOf: DefinitionOf,
  verb: "set" | "redact",
  marks: ReadonlySet<string> = new Set(),
): { nodeId: string; input: string } {
  const match = target(graph, key, marks, definitionOf);
  if (!("reason" in match)) return match;
  const { reason, suggestion } = match;
  throw new LatentkitError("usage.invalid", `Cannot ${verb} a value: ${reason}`, { suggestion });
}

/** An input that a key sets; `type` as its class declares it, "" if it declares none. */
export interface KeyInput {
  readonly nodeId: string;
  readonly input: string;
  readonly type: string;
  /** Whether it takes whole numbers beyond 2^53, or passes them on by links. */
  readonly isSeed?: boolean;
}

/** Why a key names nothing in a graph. */
export interface UnknownKey {
  readonly reason: string;
  /** Whether it names a node or several inputs, and so has no other meaning. */
  readonly isNear?: boolean;
  readonly suggestion?: string;
}

/**
 * The inputs that a key of `set` gives its whole value to: the one that "6.text" names, or all that are nothing but the
 * placeholder. None if a placeholder only stands inside longer texts.
 */
export function inputsOfKey(graph: Graph, key: string, definitionOf: DefinitionOf): readonly KeyInput[] | UnknownKey {
  const marks = placeholders(graph);
  const match = marks.has(key) ? wholeInputs(graph, key) : target(graph, key, marks, definitionOf);
  if ("reason" in match) return match;
  const isSeed = createSeedTest(graph, definitionOf);
  return [match].flat().map(({ nodeId, input }) => {
    const declared = definitionOf(String((graph[nodeId] as Graph).class_type))?.inputs ?? {};
    const spec = Object.hasOwn(declared, input) ? declared[input] : undefined;
    return { nodeId, input, type: spec?.type ?? "", isSeed: isSeed(nodeId, spec) };
  });
}

function wholeInputs(graph: Graph, key: string): { nodeId: string; input: string }[] {
  const inputs: { nodeId: string; input: string }[] = [];
  for (const [nodeId, node] of Object.entries(graph)) {
    if (!isObject(node) || !isObject(node.inputs)) continue;
    for (const [input, value] of Object.entries(node.inputs)) {
      if (typeof value === "string" && wholePlaceholder(value) === key) inputs.push({ nodeId, input });
    }
  }
  return inputs;
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

/**
 * The key by the node's id, "6.text", if it is a common name ("prompt") of that input; a placeholder, title or input
 * with that very name comes first.
 */
export function canonicalKey(graph: Graph, key: string, definitionOf: DefinitionOf): string {
  if (!COMMON_NAMES.has(key) || placeholders(graph).has(key) || nodesTitled(graph, key, definitionOf).length > 0)
    return key;
  const match = target(graph, key, placeholders(graph), definitionOf);
  return "reason" in match ? key : `${match.nodeId}.${match.input}`;
}

/** Values with common names replaced by keys with node ids. Fails with usage.invalid if two keys mean one input. */
export function canonicalValues(
  graph: Graph,
  values: Readonly<Record<string, unknown>>,
  definitionOf: DefinitionOf,
): Readonly<Record<string, unknown>> {
  const keys = Object.keys(values);
  if (!keys.some((key) => COMMON_NAMES.has(key))) return values;
  const canonical: Record<string, unknown> = {};
  for (const key of keys) {
    const own = canonicalKey(graph, key, definitionOf);
    if (own !== key && Object.hasOwn(values, own)) {
      throw new LatentkitError("usage.invalid", `set ${key}: ${own} is the same input and is also set.`);
    }
    canonical[own] = values[key];
  }
  return canonical;
}

/** Node and input that a key names: by the node's id or, if no node has it, by the title of a primitive or a common name. */
function target(graph: Graph, key: string, marks: ReadonlySet<string>, definitionOf: DefinitionOf) {
  const dotted = readNode(graph, key, definitionOf);
  if (dotted?.isInput) return { nodeId: dotted.nodeId, input: dotted.input };
  const [nodeId, other] = nodesTitled(graph, key, definitionOf);
  if (nodeId !== undefined && other === undefined) return { nodeId, input: PRIMITIVE_INPUT };
  if (nodeId !== undefined) {
    const reason = `nodes ${nodeId} and ${other} both have the title ${describe(key)}; set one by its id.`;
    return { reason, isNear: true };
  }
  if (dotted !== undefined) {
    const { nodeId, input, names, classType } = dotted;
    const unknown = unknownKey(`node ${nodeId} (${classType}) has no input "${input}"`, input, names(), `${nodeId}.`);
    return { ...unknown, isNear: true };
  }
  if (key.includes(".")) {
    const nodeId = key.slice(0, key.indexOf("."));
    const unknown = unknownKey(
      `the graph has no node "${nodeId}"`,
      nodeId,
      Object.keys(graph),
      "",
      key.slice(nodeId.length),
    );
    // other words may also hold a dot
    return { ...unknown, isNear: /^\d+(?::\d+)*\.\w/.test(key) };
  }
  const [common, ...others] = inputsByCommonName(graph, key, definitionOf);
  if (common !== undefined && others.length === 0) return common;
  if (common !== undefined) {
    const all = [common, ...others].map(({ nodeId, input }) => `${nodeId}.${input}`);
    return {
      reason: `${describe(key)} may mean ${all.slice(0, MAX_NAMED).join(" or ")}; set one by its id.`,
      isNear: true,
    };
  }
  const reason =
    marks.size === 0 ? "and the graph has no placeholder" : `and no placeholder {{${key}}} is in the graph`;
  const what = `"${key}" names no node's input (6.text) ${reason}`;
  const ids = nodesWithInput(graph, key);
  if (ids.length > 0) {
    const keys = ids.slice(0, MAX_NAMED).map((id) => `${id}.${key}`);
    return { reason: `${what}. Did you mean ${keys.join(" or ")}?`, suggestion: keys[0] };
  }
  const names = [...COMMON_NAMES].filter((name) => inputsByCommonName(graph, name, definitionOf).length === 1);
  return unknownKey(what, key, [...marks, ...titledPrimitives(graph, definitionOf).keys(), ...names]);
}

/** Ids of the nodes with a literal value for an input of this name. */
const nodesWithInput = (graph: Graph, input: string): string[] =>
  Object.entries(graph).flatMap(([id, node]) => {
    const inputs = isObject(node) && isObject(node.inputs) ? node.inputs : {};
    return Object.hasOwn(inputs, input) && !Array.isArray(inputs[input]) ? [id] : [];
  });

/** The first node that a dotted key may mean; node ids and input names may hold dots themselves. */
function readNode(graph: Graph, key: string, definitionOf: DefinitionOf) {
  for (const { nodeId, input } of readDottedKey(key)) {
    const node = Object.hasOwn(graph, nodeId) ? graph[nodeId] : undefined;
    if (!isObject(node)) continue;
    const classType = String(node.class_type);
    const present = isObject(node.inputs) ? node.inputs : {};
    const declared = definitionOf(classType)?.inputs ?? {};
    const isInput = Object.hasOwn(present, input) || Object.hasOwn(declared, input);
    const names = () => [...Object.keys(declared), ...Object.keys(present)];
    return { nodeId, input, isInput, names, classType };
  }
  return undefined;
}

/** Titles that name one primitive as keys of `set`, by its id: a placeholder or the input of a node may have the key. */
export function titleKeys(graph: Graph, definitionOf: DefinitionOf): Map<string, string> {
  const marks = placeholders(graph);
  const titles = new Map<string, string>();
  for (const [title, [nodeId, other]] of titledPrimitives(graph, definitionOf)) {
    const isTaken = marks.has(title) || readNode(graph, title, definitionOf)?.isInput;
    if (nodeId !== undefined && other === undefined && !isTaken) titles.set(nodeId, title);
  }
  return titles;
}

function unknownKey(what: string, word: string, candidates: Iterable<string>, before = "", after = ""): UnknownKey {
  const whole = (near: string) => `${before}${near}${after}`;
  const { suggestion, hint } = suggest(word, candidates, whole);
  return { reason: `${what}.${hint}`, suggestion: suggestion && whole(suggestion) };
}

/** Ids of the nodes that keys of `set` change. */
export function nodesOfKeys(graph: Graph, keys: readonly string[]): Set<string> {
  const keySet = new Set(keys);
  const nodes = new Set<string>();
  for (const [nodeId, node] of Object.entries(graph)) {
    const title = isObject(node) ? titleOf(node)?.trim() : undefined;
    const isNamed = keys.some((key) => key.startsWith(`${nodeId}.`)) || (title !== undefined && keySet.has(title));
    if (isNamed || [...placeholders(node)].some((key) => keySet.has(key))) nodes.add(nodeId);
  }
  return nodes;
}

const PLACEHOLDERS = Symbol("placeholders");

/** Keys of all placeholders below a value. */
export function placeholders(value: unknown): ReadonlySet<string> {
  if (typeof value !== "object" || value === null) return collect(value, new Set());
  return recall(value, PLACEHOLDERS, () => collect(value, new Set()));
}

function collect(value: unknown, keys: Set<string>): Set<string> {
  if (typeof value === "string") for (const key of placeholderKeys(value)) keys.add(key);
  if (Array.isArray(value)) for (const item of value) collect(item, keys);
  else if (isObject(value))
    for (const item of Object.values(value)) for (const key of placeholders(item)) keys.add(key);
  return keys;
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
    if (LITERALS[type as keyof typeof LITERALS].test(value)) node.inputs[name] = parseJson(value);
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

const isObject = (value: unknown): value is Graph =>
  value !== null && typeof value === "object" && !Array.isArray(value);
