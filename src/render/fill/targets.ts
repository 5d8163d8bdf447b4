import { describe, LatentkitError } from "../../base/errors.js";
import { isObject } from "../../base/options.js";
import { suggest } from "../../base/suggest.js";
import { titleOf } from "../../graph/unknown-classes.js";
import {
  COMMON_NAMES,
  type DefinitionOf,
  inputsByCommonName,
  nodesTitled,
  PRIMITIVE_INPUT,
  placeholders,
  readDottedKey,
  titledPrimitives,
  wholePlaceholder,
} from "./keys.js";
import { createSeedTest } from "./seed-digits.js";

/** Inputs that a message names. */
const MAX_NAMED = 8;

type Graph = Record<string, unknown>;

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

// decisions: A misspelt name is an error
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
