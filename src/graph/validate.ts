import { atNode, LatentkitError } from "../base/errors.js";
import { recall } from "../io/json/lossless.js";
import { type NodeDefinition, needsNetwork } from "../nodes/define.js";
import type { ChoiceContext } from "../nodes/inputs.js";
import type { Registry } from "../nodes/registry.js";
import type { Job } from "./job.js";
import { findDefinitions, type Graph, parseGraph } from "./parse.js";
import { createFillPrefix, PREFIX, prefixWarnings } from "./prefixes.js";
import {
  defaultWarning,
  linkedNodes,
  type PreparedLink,
  type PreparedNode,
  unknownInputs,
  unknownInputWarning,
} from "./prepared.js";
import { findCycles, findRoots, withDependents, withoutUnknown } from "./topology.js";
import {
  type CheckedInput,
  cycleError,
  type GraphError,
  isOfHost,
  type NodeErrors,
  networkError,
  outputsFailed,
  promptError,
  validationFailure,
} from "./validation/graph-error.js";
import {
  ENCODERS,
  type EncoderSearch,
  encoderFiles,
  familyRefusal,
  hostRefusals,
  loadError,
  presetRefusals,
} from "./validation/host-refusals.js";
import { linkRefusals } from "./validation/link-refusals.js";
import { checkCached } from "./validation/validate-node.js";

/** The part of a job that decides how a graph is checked, with nodes and host. */
export interface ValidateOptions
  extends Readonly<
    Pick<Job, "targets" | "partialExecutionTargets" | "inputDir" | "files" | "classAliases" | "allowNetwork">
  > {
  readonly registry: Registry;
  /** Source of the choices that depend on installed models; the preview host if absent. */
  readonly host?: ChoiceContext["host"];
  /** @internal The package's own nodes: their links are followed to the model files behind them. */
  readonly builtIns?: Registry;
}

export interface GraphWarning {
  /** Absent if the warning is about the whole graph. */
  readonly nodeId?: string;
  readonly input?: string;
  readonly message: string;
  readonly suggestion?: string;
}

/** Result of a validation. With `ok`, `outputs` can be computed; `nodeErrors` has the errors of those that cannot. */
export type Validation =
  | {
      readonly ok: true;
      readonly outputs: string[];
      readonly nodeErrors: Record<string, NodeErrors>;
      readonly warnings: readonly GraphWarning[];
    }
  | {
      readonly ok: false;
      readonly error: GraphError;
      readonly nodeErrors: Record<string, NodeErrors>;
      readonly warnings: readonly GraphWarning[];
    };

/**
 * Checks a graph (an object or JSON text), without running it, in time linear in its size. Only nodes that an output needs
 * are checked; one output without errors is enough. Errors are data in ComfyUI's form; nothing is thrown for them.
 */
export function validateGraph(prompt: unknown, options: ValidateOptions): Validation {
  try {
    const graph = withoutUnknown(parseGraph(prompt, options), options.registry, options.targets);
    return checkGraph(graph, findDefinitions(graph, options.registry), options, options).validation;
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    return { ok: false, error: promptError(error), nodeErrors: {}, warnings: [] };
  }
}

const UNKNOWN = Symbol("unknown inputs");

/** Beyond it, lists of dependent outputs are cut: their total can be quadratic in a hostile graph's size. */
const MAX_DEPENDENT_STEPS = 500_000;
/** Widgets of the editor itself, which older versions export with the inputs. */
const EDITOR_LEFTOVERS: ReadonlySet<string> = new Set([
  "upload",
  "image_upload",
  "choose file to upload",
  "control_after_generate",
  "speak_and_recognation",
]);
/** Suggestions cost time, and more unknown inputs than this are not typing errors. */
export const MAX_WARNINGS = 200;

export interface CheckedGraph {
  readonly validation: Validation;
  readonly prepared: Map<string, PreparedNode>;
  readonly order: readonly string[];
  /** All outputs in order, and those of them that cannot be computed. */
  readonly roots: readonly string[];
  readonly leftOut: readonly string[];
}

/**
 * Validates a parsed graph and prepares the nodes that its good outputs need, in an order in which they can run. Throws
 * for errors of the whole graph.
 */
export function checkGraph(
  graph: Graph,
  definitions: ReadonlyMap<string, NodeDefinition>,
  job: Omit<ValidateOptions, "registry" | "host">,
  { host, builtIns }: { readonly host?: ChoiceContext["host"]; readonly builtIns?: Registry },
): CheckedGraph {
  const roots = findRoots(graph, definitions, job);
  const context: ChoiceContext = { host, inputDir: job.inputDir, files: job.files, hints: { left: MAX_WARNINGS } };
  const prepared = new Map<string, PreparedNode>();
  const errors = new Map<string, GraphError[]>();
  const refused = new Map<string, GraphError[]>();
  const families = new Set<string>();
  const missing = new Map<string, GraphError>();
  const warnings: GraphWarning[] = graph.notes.slice(0, MAX_WARNINGS).map((message) => ({ message }));
  const via = new Map<string, { consumer: string; link: PreparedLink }>();
  const linkTo = (id: string): { at: CheckedInput; link: readonly unknown[] } | undefined => {
    const first = via.get(id);
    if (first === undefined) return undefined;
    const { input, spec, source, slot } = first.link;
    const node = (graph.prompt[first.consumer] as { class_type: string }).class_type;
    return { at: { nodeId: first.consumer, node, input, spec, context }, link: [source, slot] };
  };
  const warn = (warning: GraphWarning) => {
    if (warnings.length < MAX_WARNINGS) warnings.push(warning);
  };
  const fillPrefix = createFillPrefix(graph);
  const queue = [...roots];
  const seen = new Set(roots);
  for (let next = 0; next < queue.length; next++) {
    const id = queue[next]!;
    const raw = graph.prompt[id] as Record<string, unknown>;
    const definition = definitions.get(id)!;
    const at = { nodeId: id, node: raw.class_type as string };
    const fail = (list: readonly GraphError[]) => {
      if (list.length > 0) errors.set(id, [...(errors.get(id) ?? []), ...list]);
    };
    const checked = checkCached(id, raw, definitions, context, builtIns);
    const { fault, bends } = checked;
    fail(fault === undefined ? checked.errors : [validationFailure(fault.error, fault.kind, linkTo(id))]);
    const links = fault === undefined ? checked.links : [];
    const inputs = fault === undefined ? (raw.inputs as Record<string, unknown>) : {};
    if (job.allowNetwork === false && needsNetwork(definition, inputs, job.files)) fail([networkError(at)]);
    const unknown = recall(raw, UNKNOWN, () => unknownInputs(definition, inputs), [definition, fault === undefined]);
    for (const name of checked.defaults) warn(defaultWarning(at, name, checked.values[name]));
    for (const [name] of unknown)
      if (!EDITOR_LEFTOVERS.has(name)) warn(unknownInputWarning(at, name, Object.keys(definition.inputs)));
    for (const { input, bend } of bends) warn({ nodeId: id, input, message: atNode(at, `input "${input}": ${bend}.`) });
    const refusals = hostRefusals(definition, id, checked.values, host);
    refusals.push(...presetRefusals(id, checked.values, host, { graph, definitions }));
    for (const { input, problem } of promptWarnings(id, checked.values, { graph, definitions, host })) {
      if (typeof problem === "string") warn({ nodeId: id, input, message: atNode(at, problem) });
      else refusals.push(loadError(at, input, problem));
    }
    const family = familyRefusal(definition, id, inputs, { host, said: families });
    if (family !== undefined) missing.set(id, family);
    if (refusals.length > 0) refused.set(id, refusals);
    const prefix = fillPrefix(checked.values[PREFIX]);
    for (const message of prefixWarnings(prefix)) warn({ nodeId: id, input: PREFIX, message: atNode(at, message) });
    const isFilled = prefix !== checked.values[PREFIX];
    const values = isFilled ? { ...checked.values, [PREFIX]: prefix } : checked.values;
    prepared.set(id, { id, displayId: id, definition, links, values, bends, unknown });
    for (const link of links) {
      if (seen.has(link.source)) continue;
      seen.add(link.source);
      via.set(link.source, { consumer: id, link });
      queue.push(link.source);
    }
  }
  for (const [id, misfits] of linkRefusals({ nodes: prepared, host, builtIns }))
    if (misfits.length > 0) refused.set(id, [...(refused.get(id) ?? []), ...misfits]);
  addMissing(refused, missing);
  const certain = refused.size === 0 ? refused : eager(roots, prepared);
  for (const [id, refusals] of refused) {
    // a node behind lazy inputs may never run
    if (certain.has(id)) errors.set(id, [...refusals, ...(errors.get(id) ?? [])]);
    else warnings.push(...refusals.map(({ sentence, input }) => ({ nodeId: id, input, message: sentence })));
  }
  const sources = linkedNodes(prepared);
  const { stuck, order, cycles } = findCycles(sources);
  for (const cycle of cycles) errors.set(cycle[0]!, [...(errors.get(cycle[0]!) ?? []), cycleError(cycle)]);
  const bad = withDependents([...errors.keys(), ...stuck], sources);
  const outputs = roots.filter((id) => !bad.has(id));
  const nodes = { prepared, order, roots, leftOut: roots.filter((id) => bad.has(id)) };
  const nodeErrors = describeNodes(graph, prepared, errors, bad, roots);
  if (outputs.length > 0) return { validation: { ok: true, outputs, nodeErrors, warnings }, ...nodes };
  const error = outputsFailed(roots.flatMap((id) => errors.get(id) ?? []));
  return { validation: { ok: false, error, nodeErrors, warnings }, ...nodes };
}

/** Warnings about parts of a node's prompts that the host would ignore, and errors that encoding them would raise. */
function promptWarnings(
  id: string,
  values: Readonly<Record<string, unknown>>,
  { graph, definitions, host }: EncoderSearch & { readonly host: ChoiceContext["host"] },
): { input: string; problem: string | LatentkitError }[] {
  if (host?.promptWarnings === undefined) return [];
  const { inputs } = definitions.get(id)!;
  const specs = Object.entries(inputs);
  if (!specs.some(([, { type, files }]) => ENCODERS.has(type) || files === "checkpoints")) return [];
  return specs.flatMap(([input, { type }]) => {
    const text = type === "STRING" ? values[input] : undefined;
    if (typeof text !== "string") return [];
    const problems = host.promptWarnings!(text, encoderFiles(id, { graph, definitions }));
    return problems.map((problem) => ({ input, problem }));
  });
}

/** Adds the families of missing files to the refusals, unless a file's header, which is more reliable than a name, has done so. */
function addMissing(refused: Map<string, GraphError[]>, missing: ReadonlyMap<string, GraphError>): void {
  const said = [...refused.values()].flat();
  for (const [id, error] of missing) {
    const start = error.sentence.slice(0, error.sentence.indexOf("(node "));
    if (!said.some(({ sentence }) => sentence.startsWith(start))) refused.set(id, [error, ...(refused.get(id) ?? [])]);
  }
}

/** Nodes that the roots need in any case, so without those behind lazy inputs. */
function eager(roots: readonly string[], prepared: ReadonlyMap<string, PreparedNode>): ReadonlyMap<string, unknown> {
  const found = new Map<string, true>(roots.map((id) => [id, true]));
  for (const id of found.keys()) {
    for (const { source, spec } of prepared.get(id)!.links) if (!spec.lazy) found.set(source, true);
  }
  return found;
}

function describeNodes(
  graph: Graph,
  prepared: ReadonlyMap<string, PreparedNode>,
  errors: ReadonlyMap<string, GraphError[]>,
  bad: ReadonlySet<string>,
  roots: readonly string[],
): Record<string, NodeErrors> {
  const nodeErrors = new Map<string, NodeErrors>();
  for (const [id, own] of errors) {
    const { class_type } = graph.prompt[id] as { class_type: string };
    nodeErrors.set(id, { errors: own, dependent_outputs: [], class_type });
  }
  let steps = 0;
  for (const root of roots) {
    if (!bad.has(root)) continue;
    const seen = new Set([root]);
    for (const id of seen) {
      if (++steps > MAX_DEPENDENT_STEPS) break;
      nodeErrors.get(id)?.dependent_outputs.push(root);
      for (const { source } of prepared.get(id)?.links ?? []) if (bad.has(source)) seen.add(source);
    }
  }
  return Object.fromEntries(nodeErrors);
}

/** Errors beyond these limits are counted, not quoted. */
const NAMED_ERRORS = 5;
const NAMED_CHARACTERS = 1000;

/** Makes one error of an invalid graph: the first error, then the others; the cause holds all data. */
export function validationError(validation: Validation): LatentkitError {
  const errors = Object.entries(validation.nodeErrors).flatMap(([nodeId, { class_type, errors }]) =>
    errors.map((error) => ({ nodeId, node: class_type, error })),
  );
  // other values would not help if the graph cannot run at all
  errors.sort((a, b) => Number(isOfHost(b.error)) - Number(isOfHost(a.error)));
  if (errors.length === 0 && !validation.ok) {
    const { code, sentence, input, received, expected, suggestion } = validation.error;
    return new LatentkitError(code, sentence, { input, received, expected, suggestion }, { cause: validation });
  }
  const { nodeId, node, error } = errors[0]!;
  const { code, sentence, input, received, expected, suggestion } = error;
  const details = { nodeId, node, input, received, expected, suggestion };
  const others = errors.slice(1).map(({ error }) => error.sentence);
  return new LatentkitError(code, sentence + othersText(others), details, { cause: validation });
}

function othersText(sentences: readonly string[]): string {
  if (sentences.length === 0) return "";
  const named: string[] = [];
  let characters = 0;
  for (const sentence of sentences) {
    characters += sentence.length;
    if (named.length + 1 === NAMED_ERRORS || characters > NAMED_CHARACTERS) break;
    named.push(sentence);
  }
  const count = sentences.length === 1 ? "There is 1 more error" : `There are ${sentences.length} more errors`;
  const rest = sentences.length - named.length;
  if (named.length === 0) return ` ${count}.`;
  return ` ${count}: ${named.join(" ")}${rest === 0 ? "" : ` And ${rest} more.`}`;
}
