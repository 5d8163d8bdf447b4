import { inputError } from "../../errors.js";
import { Blocker, type NodeContext, type NodeDefinition, toResult } from "../../nodes/define.js";
import type { NodeUi } from "../events.js";
import type { PreparedNode } from "../prepared.js";
import { argumentsOf, findBlocker, type Gathered } from "./gather.js";

/** One call's answer: values in output order, and the graph to run in the node's place. */
export interface Answer {
  readonly result: readonly unknown[];
  readonly expand?: Readonly<Record<string, unknown>>;
}

export interface CallResult {
  readonly answers: readonly Answer[];
  readonly ui?: NodeUi;
  /** Calls that ran; the others were blocked. */
  readonly ran: number;
  /** Messages of the blockers that kept calls from running. */
  readonly messages: ReadonlySet<string>;
}

const NO_MESSAGES: ReadonlySet<string> = new Set();

/** Runs a node once for each element of its lists. Where an input is a blocker the outputs are, silently. */
export async function callNode(
  definition: NodeDefinition,
  gathered: Gathered,
  hidden: Readonly<Record<string, unknown>>,
  context: NodeContext,
): Promise<CallResult> {
  const answers: Answer[] = [];
  let messages = NO_MESSAGES;
  let ui: NodeUi | undefined;
  let ran = 0;
  for (let index = 0; index < gathered.calls; index++) {
    const call = argumentsOf(gathered, index, definition.inputIsList);
    const blocker = findBlocker(call, definition.inputIsList);
    if (blocker !== undefined) {
      if (blocker.message !== undefined) messages = new Set(messages).add(blocker.message);
      answers.push({ result: definition.outputs.map(() => new Blocker()) });
      continue;
    }
    context.signal.throwIfAborted();
    ran++;
    const returned = definition.run(Object.assign(call, hidden), context);
    const answer = toResult(definition, isPromise(returned) ? await returned : returned);
    answers.push(answer);
    ui = mergeUi(ui, answer.ui);
  }
  return { answers, ui, ran, messages };
}

/** Lazy inputs that some element of the node's lists asks for, in the order the node declares them. */
export async function askLazy(definition: NodeDefinition, gathered: Gathered): Promise<string[]> {
  const wanted = new Set<string>();
  for (let index = 0; index < gathered.calls; index++) {
    const call = argumentsOf(gathered, index, definition.inputIsList);
    if (findBlocker(call, definition.inputIsList) !== undefined) continue;
    const returned = definition.checkLazy!(call);
    for (const input of isPromise(returned) ? await returned : returned) wanted.add(input);
  }
  const declared = Object.keys(definition.inputs).filter((input) => wanted.delete(input));
  return [...declared, ...wanted];
}

/** The nodes that a node's wanted lazy inputs link to and that nobody computed yet. Throws where one has no link. */
export function missingSources(
  { id, definition, links }: PreparedNode,
  wanted: readonly string[],
  { lists, missing, held }: Gathered,
): string[] {
  const open = wanted.filter((input) => !held.has(input) && (missing.has(input) || !Object.hasOwn(lists, input)));
  return open.map((input) => {
    const link = links.find((candidate) => candidate.input === input);
    if (link !== undefined) return link.source;
    const at = { nodeId: id, node: definition.key, input };
    throw inputError("input.missing", at, "the value that the node asks for", undefined);
  });
}

/** Values of every output over all calls; a list output adds its elements. */
export function mergeOutputs(definition: NodeDefinition, answers: readonly Answer[]): unknown[][] {
  const [only] = answers;
  return definition.outputs.map(({ list }, slot) => {
    if (answers.length === 1 && !list) return [only!.result[slot]];
    return answers.flatMap(({ result }) => {
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

/** An await costs a turn of the queue, which most nodes do not need. */
function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
