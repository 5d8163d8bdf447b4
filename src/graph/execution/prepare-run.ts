import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Job } from "../job.js";
import { type Change, readChange, type Signer } from "../memory/signature.js";
import { findDefinitions, type Graph, inputsOf } from "../parse.js";
import { linkedNodes, type PreparedNode, prepareUnchecked } from "../prepared.js";
import type { Surroundings } from "../surroundings.js";
import { findCycles, findRoots } from "../topology.js";
import { type CheckedGraph, checkGraph, validationError } from "../validate.js";
import type { NodeErrors } from "../validation/graph-error.js";
import { refuseNetwork } from "./context.js";

export interface PreparedRun {
  readonly roots: readonly string[];
  /** Outputs that cannot be computed. */
  readonly leftOut: readonly string[];
  /** All nodes that the roots need. */
  readonly nodes: Map<string, PreparedNode>;
  /** These nodes in an order of computation, and the cycles that prevent one. */
  readonly order: readonly string[];
  readonly cycles: readonly (readonly string[])[];
  /** The rest of the graph, unchecked: it does not run, but its cached results stay. */
  readonly others: ReadonlyMap<string, PreparedNode>;
  readonly warnings: readonly { nodeId?: string; message: string }[];
}

/**
 * Reads the graph's nodes for a run. Throws a LatentkitError if no output can be computed or, unless the run may be
 * partial, if one cannot.
 */
export function prepareRun(graph: Graph, job: Job, surroundings: Surroundings): PreparedRun {
  const definitions = findDefinitions(graph, surroundings.registry);
  const choiceContext = { host: surroundings.host, inputDir: job.inputDir, files: job.files };
  const exists = (id: string) => definitions.has(id);
  const unchecked = (id: string) => {
    const source = { id, displayId: id, definition: definitions.get(id)!, inputs: inputsOf(graph.prompt, id) ?? {} };
    return prepareUnchecked(source, choiceContext, exists);
  };
  const others = (nodes: ReadonlyMap<string, PreparedNode>) =>
    new Map(graph.ids.filter((id) => !nodes.has(id)).map((id) => [id, unchecked(id)]));
  if (job.validate === false) {
    const roots = findRoots(graph, definitions, job);
    const nodes = reachable(unchecked, roots);
    const { order, cycles } = findCycles(linkedNodes(nodes));
    if (job.allowNetwork === false) refuseNetwork(nodes.values(), job.files);
    const warnings = graph.notes.map((message) => ({ message }));
    return { roots, leftOut: [], nodes, order, cycles, others: others(nodes), warnings };
  }
  const { validation, prepared, order, leftOut } = checkGraph(graph, definitions, job, surroundings);
  if (!validation.ok || (leftOut.length > 0 && job.partial === false)) throw validationError(validation);
  const roots = validation.outputs;
  const nodes = reachable((id) => prepared.get(id)!, roots);
  const unknown = validation.warnings.map(({ nodeId, message }) => ({ nodeId, message }));
  const warnings = [...leftOutWarnings(graph, validation.nodeErrors, leftOut), ...unknown];
  // an output that needs a cycle is not a root
  return {
    roots,
    leftOut,
    nodes,
    order: order.filter((id) => nodes.has(id)),
    cycles: [],
    others: others(nodes),
    warnings,
  };
}

/** Beyond it a warning says how many more there are. */
const MAX_LEFT_OUT_WARNINGS = 100;
const NAMED_OUTPUTS = 5;

/** A warning for each error, with the outputs left out because of it. */
function leftOutWarnings(
  { prompt }: Graph,
  nodeErrors: Readonly<Record<string, NodeErrors>>,
  leftOut: CheckedGraph["leftOut"],
): { nodeId: string; message: string }[] {
  const nameOf = (id: string) => `${id} (${(prompt[id] as { class_type: string }).class_type})`;
  const all = Object.entries(nodeErrors).flatMap(([nodeId, { errors, dependent_outputs: outputs }]) => {
    const named = outputs.slice(0, NAMED_OUTPUTS).map(nameOf).join(", ");
    const more = outputs.length > NAMED_OUTPUTS ? ` and ${outputs.length - NAMED_OUTPUTS} more` : "";
    const left = named === "" ? "" : ` Left out: ${outputs.length === 1 ? "output" : "outputs"} ${named}${more}.`;
    return errors.map(({ sentence }) => ({ nodeId, message: `${sentence}${left}` }));
  });
  if (all.length <= MAX_LEFT_OUT_WARNINGS) return all;
  const count = all.length - MAX_LEFT_OUT_WARNINGS;
  const message = `${count} more errors; ${leftOut.length} outputs are left out in all.`;
  return [...all.slice(0, MAX_LEFT_OUT_WARNINGS), { nodeId: leftOut[0]!, message }];
}

function reachable(prepare: (id: string) => PreparedNode, roots: readonly string[]): Map<string, PreparedNode> {
  const nodes = new Map<string, PreparedNode>();
  const queue = [...roots];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (nodes.has(id)) continue;
    const node = prepare(id);
    nodes.set(id, node);
    for (const { source } of node.links) queue.push(source);
  }
  return nodes;
}

/**
 * Signs all nodes outside cycles. `isChanged` is called for nodes that run; `onSigned` receives its result for each of
 * them, sources before their readers. Without it, volatile nodes are skipped: no other run could use their results.
 */
export async function signAll(
  { nodes, others, order }: PreparedRun,
  signer: Signer,
  context: ChoiceContext,
  onSigned?: (node: PreparedNode, change: Change | undefined) => void,
): Promise<Map<string, number>> {
  const signatures = new Map<string, number>();
  const sourceOf = (id: string) => signatures.get(id);
  for (const id of order) {
    const node = nodes.get(id)!;
    const hasChange = node.definition.isChanged !== undefined;
    const isAsked = hasChange && (onSigned !== undefined || !signer.isVolatile(id));
    const change = isAsked ? await readChange(node, context) : undefined;
    const isAlwaysNew = hasChange && change === undefined;
    signatures.set(id, isAlwaysNew ? signer.unique() : signer.sign(node, sourceOf, change));
    onSigned?.(node, change);
  }
  if (others.size === 0) return signatures;
  for (const id of findCycles(linkedNodes(new Map([...nodes, ...others]))).order) {
    const node = others.get(id);
    if (node === undefined) continue;
    const isUnknown = node.definition.isChanged !== undefined;
    signatures.set(id, isUnknown ? signer.unique() : signer.sign(node, sourceOf, undefined));
  }
  return signatures;
}
