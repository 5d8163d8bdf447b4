import { describe, LatentkitError } from "../base/errors.js";
import {
  HOSTILE_KEYS,
  isFrozenJson,
  isPlainObject,
  keysInOrder,
  MAX_DEPTH,
  mayLackDigits,
  parseJson,
  printJsonPretty,
  rememberOrder,
} from "../io/json/lossless.js";
import type { NodeDefinition } from "../nodes/define.js";
import type { Registry } from "../nodes/registry.js";
import { ggufOf, titleOf, type UnknownNode, unknownClassesError } from "./unknown-classes.js";
import { isEditorFile, unwrapGraph } from "./wrappers.js";

// Keys that are not numbers and hold no node are left out with a warning; a numbered key without class_type is an
// error, as in ComfyUI.
// A list is a link, as in ComfyUI; a list as a value is wrapped in __value__.
/** Other names of node classes: prefix to prefix, or whole key to whole key. */
export type ClassAliases = Readonly<Record<string, string>>;

/** Nodes by id, as files of graphs have them. */
export type Prompt = Readonly<Record<string, unknown>>;

/** Inputs of a node; undefined for a node that is missing or has none. */
export function inputsOf(prompt: Prompt, nodeId: string): Record<string, unknown> | undefined {
  const node = Object.hasOwn(prompt, nodeId) ? prompt[nodeId] : undefined;
  return isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : undefined;
}

/** Whether a value of an input names a node and one of its outputs. */
export const isLink = (value: unknown): value is readonly [nodeId: string, output: unknown] =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === "string";

/** Inputs that hold a seed, by the names that nodes give them. */
export const SEED_INPUTS: ReadonlySet<string> = new Set(["seed", "noise_seed"]);

/** More nodes than any real graph has. */
const MAX_NODES = 200_000;

export interface Graph {
  /** The author's graph without entries that are not nodes; class names are unchanged, as metadata shows them. */
  readonly prompt: Record<string, unknown>;
  /** Sentences about parts of the author's file that are not in the graph. */
  readonly notes: readonly string[];
  /** Node ids in the order of the file. */
  readonly ids: readonly string[];
  /** Returns the registry's name of a class, aliases resolved. */
  classOf(classType: string): string;
}

/** Holds the sentences that belong to a graph which was made of another file. */
const NOTES = Symbol("notes");

/** Returns the graph, with sentences about its making that `parseGraph` finds. */
export function withNotes<Graph extends object>(graph: Graph, notes: readonly string[]): Graph {
  return notes.length === 0 ? graph : Object.defineProperty(graph, NOTES, { value: notes });
}

/**
 * Reads a graph in ComfyUI's API format from JSON text or an object, which is not changed; a request body that holds
 * one is unwrapped. Fails with graph.empty, graph.invalid-json or graph.invalid: hostile keys, nesting beyond 256
 * levels, an editor's workflow file, a node that is not an object, a number of an object whose last digits may be lost, NaN
 * or an infinity of a text.
 */
export function parseGraph(input: unknown, options: { classAliases?: ClassAliases } = {}): Graph {
  const parsed = typeof input === "string" ? parseJson(input, { nonFinite: true }) : input;
  if (parsed === undefined || parsed === null)
    throw new LatentkitError("graph.empty", `Graph: expected an object of nodes by id, received ${describe(parsed)}.`);
  if (!isPlainObject(parsed)) {
    throw invalid(`Graph: expected an object of nodes by id, received ${describe(parsed)}.`);
  }
  const graph = unwrapGraph(parsed);
  refuseEditorFile(graph);
  const count = Object.keys(graph).length;
  if (count > MAX_NODES) throw invalid(`Graph: expected at most ${MAX_NODES} nodes, received ${count}.`);
  // the parser has checked text already
  if (typeof input !== "string") refuseHostile(graph, 0);
  const { prompt, ignored } = nodesOnly(graph);
  if (typeof input === "string") refuseNonFinite(prompt);
  else refuseLostDigits(prompt);
  const ids = keysInOrder(prompt);
  for (const id of ids) {
    if (!isPlainObject(prompt[id])) {
      throw new LatentkitError(
        "graph.invalid",
        `Node ${id}: expected an object with class_type and inputs, received ${describe(prompt[id])}.`,
        { nodeId: id },
      );
    }
  }
  if (ids.length === 0 && ignored.length > 0)
    throw invalid(`Graph: expected nodes by id, received none: ${withoutClass(ignored)}.`);
  const aliases = options.classAliases ?? {};
  return { prompt, ids, notes: [...notesOf(graph), ...ignoredNotes(ignored)], classOf: aliasesOf(aliases) };
}

const notesOf = (graph: { readonly [NOTES]?: readonly string[] }): readonly string[] => graph[NOTES] ?? [];

const invalid = (message: string) => new LatentkitError("graph.invalid", message);

function refuseHostile(value: unknown, depth: number): void {
  // frozen JSON came from text, which the parser has checked
  if (typeof value !== "object" || value === null || isFrozenJson(value)) return;
  const isList = Array.isArray(value);
  if (!isList && !isPlainObject(value)) return;
  if (depth >= MAX_DEPTH) throw invalid(`Graph: nesting is deeper than ${MAX_DEPTH} levels.`);
  if (isList) {
    for (const item of value) refuseHostile(item, depth + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    if (HOSTILE_KEYS.has(key)) throw invalid(`Graph: the key "${key}" is not allowed.`);
    refuseHostile(value[key], depth + 1);
  }
}

/**
 * Parses a graph's JSON text as an object that keeps every digit, which JSON.parse does not: whole numbers beyond 2^53
 * are bigints, and `printGraphText` writes them. A workflow as the editor saves it stays one. Fails as `render` does if the text is not a graph.
 */
export function parseGraphText(text: string): Record<string, unknown> {
  if (typeof text !== "string") {
    throw new LatentkitError("usage.invalid", `parseGraphText: expected a JSON text, received ${describe(text)}.`);
  }
  const graph = parseJson(text, { what: "Graph", nonFinite: true }) as Record<string, unknown>;
  if (isPlainObject(graph) && isEditorFile(unwrapGraph(graph))) return graph;
  refuseNonFinite(parseGraph(graph).prompt);
  return graph;
}

/**
 * Prints a graph as JSON text that keeps every digit, as `parseGraphText` and `convertWorkflow` return them. JSON.stringify
 * throws for whole numbers beyond 2^53, which are bigints, and writes 7.0 as 7.
 */
export function printGraphText(graph: object): string {
  if (!isPlainObject(graph)) {
    throw new LatentkitError("usage.invalid", `printGraphText: expected a graph, received ${describe(graph)}.`);
  }
  return printJsonPretty(graph);
}

/** Returns the lookup of a class's name in a registry. */
export const aliasesOf = (aliases: ClassAliases) => (classType: string) => followAlias(classType, aliases);

function followAlias(classType: string, aliases: ClassAliases): string {
  if (Object.hasOwn(aliases, classType)) return aliases[classType]!;
  let prefix = "";
  for (const alias of Object.keys(aliases)) {
    if (alias.length > prefix.length && classType.startsWith(alias)) prefix = alias;
  }
  return prefix === "" ? classType : aliases[prefix]! + classType.slice(prefix.length);
}

/** Definition of a class, by its alias if that is registered, else by its own name; ComfyUI's first `ConditioningAverage ` ended in a blank. */
export function findDefinition(
  { classOf }: Pick<Graph, "classOf">,
  classType: string,
  registry: Registry,
): NodeDefinition | undefined {
  return registry.get(classOf(classType)) ?? registry.get(classType) ?? registry.get(classType.trimEnd());
}

/**
 * Definitions of all nodes by id, reachable or not. Fails with graph.invalid if a node has no class and with
 * graph.unknown-class, which names every class that is not registered.
 */
export function findDefinitions(graph: Graph, registry: Registry): Map<string, NodeDefinition> {
  const byClass = new Map<string, NodeDefinition>();
  const byId = new Map<string, NodeDefinition>();
  const unknown: UnknownNode[] = [];
  for (const id of graph.ids) {
    const node = graph.prompt[id] as Record<string, unknown>;
    if (!Object.hasOwn(node, "class_type")) {
      const message = `Node ${id}: expected a class_type, received none.`;
      throw new LatentkitError("graph.invalid", message, { nodeId: id, input: "class_type" });
    }
    const classType = node.class_type;
    const cached = typeof classType === "string" ? byClass.get(classType) : undefined;
    const definition =
      cached ?? (typeof classType === "string" ? findDefinition(graph, classType, registry) : undefined);
    if (definition === undefined) {
      unknown.push(unknownNode(id, node));
      continue;
    }
    byClass.set(classType as string, definition);
    byId.set(id, definition);
  }
  if (unknown.length > 0) throw unknownClassesError(unknown, registry);
  return byId;
}

/** Facts about a node of unknown class, for messages. */
export const unknownNode = (id: string, node: Readonly<Record<string, unknown>>): UnknownNode => ({
  id,
  classType: node.class_type,
  title: titleOf(node),
  gguf: ggufOf(isPlainObject(node.inputs) ? Object.values(node.inputs) : []),
});

/** Ids as the editor writes them, "12:3" inside a subgraph: the value of such a key is meant as a node. */
const NODE_ID = /^\d+(?::\d+)*$/;
const MAX_NAMED = 5;

/** Throws graph.invalid for a workflow as the editor saves it. */
function refuseEditorFile(object: Prompt): void {
  if (!isEditorFile(object)) return;
  throw new LatentkitError(
    "graph.invalid",
    "Graph: expected API format, received a workflow as the editor saves it, which convertWorkflow converts.",
  );
}

/**
 * Removes entries that the author of a graph wrote beside the nodes (`_comment`, `version`, `extra_data`): keys that are not
 * numbers and hold no object, or one with neither class_type nor inputs. Returns the object itself if there are none.
 */
function nodesOnly(prompt: Record<string, unknown>): { prompt: Record<string, unknown>; ignored: readonly string[] } {
  const ignored: string[] = [];
  for (const [key, value] of Object.entries(prompt)) if (!isMeantAsNode(key, value)) ignored.push(key);
  if (ignored.length === 0) return { prompt, ignored };
  return { prompt: withoutKeys(prompt, new Set(ignored)), ignored };
}

/** A graph without some of its entries, in the order of the file. */
export function withoutKeys(prompt: Prompt, keys: ReadonlySet<string>): Record<string, unknown> {
  const ids = keysInOrder(prompt).filter((id) => !keys.has(id));
  const nodes: Record<string, unknown> = {};
  for (const id of ids) nodes[id] = prompt[id];
  rememberOrder(nodes, ids);
  return nodes;
}

function isMeantAsNode(key: string, value: unknown): boolean {
  if (NODE_ID.test(key)) return true;
  return isPlainObject(value) && (Object.hasOwn(value, "class_type") || Object.hasOwn(value, "inputs"));
}

/** Returns a sentence about entries that are not nodes, if there are any. */
const ignoredNotes = (ignored: readonly string[]): readonly string[] =>
  ignored.length === 0
    ? []
    : [`Graph: ${withoutClass(ignored)}; ${ignored.length === 1 ? "it is" : "they are"} ignored.`];

/** Names entries that are not nodes, as a clause. */
function withoutClass(ignored: readonly string[]): string {
  const named = ignored
    .slice(0, MAX_NAMED)
    .map((key) => JSON.stringify(key.length > 40 ? `${key.slice(0, 37)}...` : key));
  const more = ignored.length - named.length;
  const list = more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
  return `${list} ${ignored.length === 1 ? "is not a node, since it has" : "are not nodes, since they have"} no class_type`;
}

/**
 * Throws graph.invalid, which names node and input, for a whole number beyond 2^53 that is not a bigint: JSON.parse, and with
 * it the import of a JSON file, silently rounds them.
 */
function refuseLostDigits(prompt: Prompt): void {
  const hint =
    "which JavaScript rounds beyond 2^53; give the number as text or bigint, or the graph as text, a path or what parseGraphText returns";
  refuse(prompt, mayLackDigits, "a whole number with all its digits", `, ${hint}`);
}

/** Throws graph.invalid, which names node and input, for NaN and infinities, which Python writes and JSON does not have. */
export function refuseNonFinite(prompt: Prompt): void {
  refuse(prompt, isNonFinite, "a finite number", "");
}

const isNonFinite = (number: number) => !Number.isFinite(number);

/** The first NaN or infinity in a JSON value; undefined where it has none. */
export const nonFiniteIn = (value: unknown): number | undefined => findNumber(value, isNonFinite, 0);

function refuse(prompt: Prompt, isBad: (number: number) => boolean, expected: string, hint: string): void {
  for (const [nodeId, node] of Object.entries(prompt)) {
    // frozen JSON came from text, which keeps every digit, and was checked before
    if (!isPlainObject(node) || isFrozenJson(node) || !isPlainObject(node.inputs)) continue;
    for (const [input, value] of Object.entries(node.inputs)) {
      const bad = findNumber(value, isBad, 0);
      if (bad === undefined) continue;
      const message = `Node ${nodeId}, input "${input}": expected ${expected}, received ${bad}${hint}.`;
      throw new LatentkitError("graph.invalid", message, { nodeId, input, expected, received: String(bad) });
    }
  }
}

function findNumber(value: unknown, isBad: (number: number) => boolean, depth: number): number | undefined {
  if (typeof value === "number") return isBad(value) ? value : undefined;
  if (!Array.isArray(value) && !isPlainObject(value)) return undefined;
  if (depth >= MAX_DEPTH)
    throw new LatentkitError("graph.invalid", `Graph: nesting is deeper than ${MAX_DEPTH} levels.`);
  for (const inner of Object.values(value)) {
    const number = findNumber(inner, isBad, depth + 1);
    if (number !== undefined) return number;
  }
  return undefined;
}
