import { inputError } from "../../base/errors.js";
import { Blocker, type NodeContext, type NodeDefinition, toResult } from "../../nodes/define.js";
import type { NodeUi } from "../events.js";
import { PREFIX, prefixOfRun, prefixWarnings } from "../prefixes.js";
import type { PreparedNode } from "../prepared.js";
import { argumentsOf, findBlocker, type Gathered } from "./gather.js";

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

/** Nodes without a result that the needed lazy inputs link to. Throws where an input has no link. */
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
