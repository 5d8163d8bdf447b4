import { describe, inputError, LatentkitError } from "../../base/errors.js";
import { isPlainObject, keysInOrder, NumberLiteral, pythonNumber } from "../../io/json/lossless.js";
import { Blocker, type NodeContext, type NodeDefinition, toResult } from "../../nodes/define.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import { plain } from "../../nodes/values.js";
import type { NodeUi } from "../events.js";
import type { Entry } from "../memory/cache.js";
import { findDefinition, type Graph } from "../parse.js";
import { PREFIX, prefixOfRun, prefixWarnings } from "../prefixes.js";
import { type PreparedNode, prepareUnchecked } from "../prepared.js";

/** Result of one call: values in output order, and the graph that replaces the node. */
export interface CallResult {
  readonly result: readonly unknown[];
  readonly expand?: Readonly<Record<string, unknown>>;
}

/** Results of all calls of a node in one run. */
export interface NodeCalls {
  readonly results: readonly CallResult[];
  readonly ui?: NodeUi;
  /** Number of calls that ran; the others were blocked. */
  readonly ran: number;
  /** Messages of the blockers that kept calls from running. */
  readonly messages: ReadonlySet<string>;
}

const NO_MESSAGES: ReadonlySet<string> = new Set();

/** Runs a node once for each element of its lists. A blocker among the inputs silently blocks the outputs of a call. */
export async function callNode(
  definition: NodeDefinition,
  gathered: Gathered,
  hidden: Readonly<Record<string, unknown>>,
  context: NodeContext,
): Promise<NodeCalls> {
  const results: CallResult[] = [];
  let messages = NO_MESSAGES;
  let ui: NodeUi | undefined;
  let ran = 0;
  for (let index = 0; index < gathered.calls; index++) {
    const call = argumentsOf(gathered, index, definition.inputIsList);
    const blocker = findBlocker(call, definition.inputIsList);
    if (blocker !== undefined) {
      if (blocker.message !== undefined) messages = new Set(messages).add(blocker.message);
      results.push({ result: definition.outputs.map(() => new Blocker()) });
      continue;
    }
    context.signal.throwIfAborted();
    ran++;
    const prefix = call[PREFIX];
    for (const message of prefixWarnings(prefix)) context.log(message);
    if (typeof prefix === "string") call[PREFIX] = prefixOfRun(prefix, context.clock());
    const returned = definition.run(Object.assign(call, hidden), context);
    const result = toResult(definition, isPromise(returned) ? await returned : returned);
    results.push(result);
    ui = mergeUi(ui, result.ui);
  }
  return { results, ui, ran, messages };
}

/** Lazy inputs that some element of the node's lists needs, in the order of their declaration. */
export async function checkLazy(definition: NodeDefinition, gathered: Gathered): Promise<string[]> {
  const needed = new Set<string>();
  for (let index = 0; index < gathered.calls; index++) {
    const call = argumentsOf(gathered, index, definition.inputIsList);
    if (findBlocker(call, definition.inputIsList) !== undefined) continue;
    const returned = definition.checkLazy!(call);
    for (const input of isPromise(returned) ? await returned : returned) needed.add(input);
  }
  const declared = Object.keys(definition.inputs).filter((input) => needed.delete(input));
  return [...declared, ...needed];
}

/** Nodes without a result that the needed lazy inputs link to. Throws if an input has no link. */
export function missingSources(
  { id, definition, links }: PreparedNode,
  needed: readonly string[],
  { lists, missing, held }: Gathered,
): string[] {
  const open = needed.filter((input) => !held.has(input) && (missing.has(input) || !Object.hasOwn(lists, input)));
  return open.map((input) => {
    const link = links.find((candidate) => candidate.input === input);
    if (link !== undefined) return link.source;
    const at = { nodeId: id, node: definition.key, input };
    throw inputError("input.missing", at, "a value, which the node needs", undefined);
  });
}

/** Output values over all calls; list outputs add their elements. */
export function mergeOutputs(definition: NodeDefinition, results: readonly CallResult[]): unknown[][] {
  const [only] = results;
  return definition.outputs.map(({ list }, slot) => {
    if (results.length === 1 && !list) return [only!.result[slot]];
    return results.flatMap(({ result }) => {
      const value = result[slot];
      // flatMap opens one level: a value that is an array itself stays whole
      return list && Array.isArray(value) ? value : [value];
    });
  });
}

function mergeUi(
  before: NodeUi | undefined,
  more: Readonly<Record<string, unknown[]>> | undefined,
): NodeUi | undefined {
  if (more === undefined) return before;
  const merged: NodeUi = { ...before };
  for (const [key, values] of Object.entries(more)) {
    merged[key] = Object.hasOwn(merged, key) ? [...merged[key]!, ...values] : [...values];
  }
  return merged;
}

/** Checked because an await costs a turn of the microtask queue, which most nodes do not need. */
function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** A node's inputs as lists of values: a literal is a list of one. */
export interface Gathered {
  readonly lists: Readonly<Record<string, readonly unknown[]>>;
  /** Lazy inputs whose sources have no result. */
  readonly missing: ReadonlySet<string>;
  /** Lazy inputs that have a value but are withheld until the node needs them. */
  readonly held: ReadonlySet<string>;
  /** Number of calls: one for each element of the longest list; 0 if an empty list keeps the node from running. */
  readonly calls: number;
  /** The input whose list is empty. */
  readonly empty?: string;
}

/** An output's declared type. */
export type TypeOf = (id: string, slot: number) => string | undefined;

/** Checks one value that came through a link and returns it as the node receives it. */
export type CheckValue = (spec: InputSpec, value: unknown, input: string) => unknown;

/**
 * Gathers the inputs that have values now. A lazy input outside `needed` is passed if it happens to have one valid
 * value; lists, blockers and wrong values are withheld, so that a node never depends on the content of a cache.
 */
export function gather(
  node: PreparedNode,
  resultOf: (id: string) => Entry | undefined,
  typeOf: TypeOf,
  check: CheckValue | undefined,
  needed: ReadonlySet<string>,
): Gathered {
  const lists: Record<string, readonly unknown[]> = {};
  let missing = NO_INPUTS;
  let held = NO_INPUTS;
  let longest = 0;
  let empty: string | undefined;
  let isAfterSkip = false;
  for (const { input, spec, source, slot } of node.links) {
    const entry = resultOf(source);
    if (entry === undefined) {
      missing = new Set(missing).add(input);
      lists[input] = NOTHING;
      longest = Math.max(longest, 1);
      continue;
    }
    const values = convertNumbers(entry.outputs[slot] ?? NOTHING, spec, typeOf(source, slot));
    if (spec.lazy && !needed.has(input)) {
      const value = values.length === 1 ? checkedOrUndefined(spec, values[0], input, check) : undefined;
      if (value === undefined) held = new Set(held).add(input);
      lists[input] = [value];
      longest = Math.max(longest, 1);
      continue;
    }
    lists[input] = check === undefined ? values : values.map((value) => checked(spec, value, input, check));
    longest = Math.max(longest, values.length);
    if (values.length === 0) {
      empty = input;
      isAfterSkip ||= entry.skipped === true;
    }
  }
  for (const input of Object.keys(node.values)) {
    lists[input] = [node.values[input]];
    longest = Math.max(longest, 1);
  }
  if (node.definition.inputIsList || empty === undefined) {
    return { lists, missing, held, calls: node.definition.inputIsList ? 1 : Math.max(1, longest) };
  }
  // as in ComfyUI, a node whose lists are all empty runs once without them
  return { lists, missing, held, calls: longest === 0 && !isAfterSkip ? 1 : 0, empty };
}

const NOTHING: readonly unknown[] = [undefined];
const NO_INPUTS: ReadonlySet<string> = new Set();

/** State before anything is gathered. */
export const NOT_GATHERED: Gathered = { lists: {}, missing: NO_INPUTS, held: NO_INPUTS, calls: 0 };

/** Makes a FLOAT of 80 a literal 80.0 for a node that distinguishes floats; for other nodes literals become numbers. */
function convertNumbers(
  values: readonly unknown[],
  { literal }: InputSpec,
  type: string | undefined,
): readonly unknown[] {
  if (literal && type === "FLOAT") {
    return values.map((value) => (Number.isInteger(value) ? new NumberLiteral(pythonNumber(value as number)) : value));
  }
  return !literal && type === "*" ? (plain(values) as readonly unknown[]) : values;
}

function checked(spec: InputSpec, value: unknown, input: string, check: CheckValue): unknown {
  return value instanceof Blocker ? value : check(spec, value, input);
}

/** Returns undefined for a blocker or a wrong value: an input that is not needed must not make the node fail. */
function checkedOrUndefined(spec: InputSpec, value: unknown, input: string, check: CheckValue | undefined): unknown {
  if (value instanceof Blocker) return undefined;
  try {
    return check === undefined ? value : check(spec, value, input);
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** Arguments of one call: whole lists, or the index-th element of each, shorter lists repeating their last. */
function argumentsOf({ lists }: Gathered, index: number, takesLists: boolean): Record<string, unknown> {
  if (takesLists) return Object.fromEntries(Object.entries(lists).map(([input, list]) => [input, [...list]]));
  const call: Record<string, unknown> = {};
  for (const input of Object.keys(lists)) {
    const list = lists[input]!;
    if (list.length > 0) call[input] = list[Math.min(index, list.length - 1)];
  }
  return call;
}

/** Returns the blocker among the arguments of a call, inside whole lists too. */
function findBlocker(call: Readonly<Record<string, unknown>>, takesLists: boolean): Blocker | undefined {
  for (const input of Object.keys(call)) {
    const value = call[input];
    if (value instanceof Blocker) return value;
    if (!takesLists || !Array.isArray(value)) continue;
    const inside: unknown = value.find((item) => item instanceof Blocker);
    if (inside instanceof Blocker) return inside;
  }
  return undefined;
}

/** An output of an expanded node: a value, or a link to a node of the expansion. */
type ExpandedOutput = { readonly value: unknown } | { readonly source: string; readonly slot: number };

/** Nodes that replace a node whose result is a graph. */
export interface Expansion {
  readonly nodes: readonly PreparedNode[];
  /** Outputs of the replaced node by call, then by slot. */
  readonly outputs: readonly (readonly ExpandedOutput[])[];
}

/**
 * Makes nodes of the graphs in a node's results. Key k of the graph of call i becomes the id "node.i.0.k"; links in the
 * graphs and in the results may name these keys or nodes outside.
 */
export function expandNode(
  node: PreparedNode,
  results: readonly CallResult[],
  context: { graph: Graph; registry: Registry; choiceContext: ChoiceContext; exists: (id: string) => boolean },
): Expansion {
  const nodes: PreparedNode[] = [];
  const outputs = results.map(({ result, expand = {} }, call) => {
    const inner = (key: string) => `${node.id}.${call}.0.${key}`;
    const isKey = (key: unknown): key is string => typeof key === "string" && Object.hasOwn(expand, key);
    const isLink = (value: unknown): value is [string, number] =>
      Array.isArray(value) && value.length === 2 && isKey(value[0]) && Number.isInteger(value[1]);
    for (const key of keysInOrder(expand)) {
      const raw = expand[key];
      if (!isPlainObject(raw) || typeof raw.class_type !== "string") throw badExpansion(node, key, raw);
      const definition = findDefinition(context.graph, raw.class_type, context.registry);
      if (definition === undefined) throw badExpansion(node, key, raw.class_type);
      const rawInputs = isPlainObject(raw.inputs) ? raw.inputs : {};
      const inputs = Object.fromEntries(
        Object.entries(rawInputs).map(([input, value]) => [input, isLink(value) ? [inner(value[0]), value[1]] : value]),
      );
      const exists = (id: string) => isKey(id.slice(inner("").length)) || context.exists(id);
      const source = { id: inner(key), displayId: node.displayId, definition, inputs };
      nodes.push(prepareUnchecked(source, context.choiceContext, exists));
    }
    return result.map(
      (value): ExpandedOutput => (isLink(value) ? { source: inner(value[0]), slot: value[1] } : { value }),
    );
  });
  return { nodes, outputs };
}

/** Nodes of the expansion that the outputs link to, once for each link. */
export const sourcesIn = ({ outputs }: Expansion): string[] =>
  outputs.flat().flatMap((slot) => ("source" in slot ? [slot.source] : []));

/** Output values of an expanded node over all its calls; list outputs add their elements. */
export function expandedOutputs(
  { definition }: PreparedNode,
  outputs: Expansion["outputs"],
  resultOf: (id: string) => Entry,
): unknown[][] {
  const calls = outputs.map((slots) =>
    slots.map((slot) => ("value" in slot ? [slot.value] : (resultOf(slot.source).outputs[slot.slot] ?? [undefined]))),
  );
  return definition.outputs.map(({ list }, slot) =>
    calls.flatMap((lists) => {
      const values = lists[slot] ?? [undefined];
      const isWhole = list && values.length === 1 && Array.isArray(values[0]);
      return isWhole ? (values[0] as unknown[]) : [...values];
    }),
  );
}

function badExpansion({ id, definition }: PreparedNode, key: string, received: unknown): LatentkitError {
  const reason = `expected node ${key} of its expansion to have a known class_type, received ${describe(received)}`;
  return new LatentkitError("graph.unknown-class", `${definition.key}: ${reason}.`, {
    nodeId: id,
    node: definition.key,
  });
}
