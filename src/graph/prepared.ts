import { atNode, describe, type LatentkitError } from "../base/errors.js";
import { suggest } from "../base/suggest.js";
import { isPlainObject, keysInOrder, NumberLiteral } from "../io/json/lossless.js";
import { bendOf } from "../nodes/bends.js";
import type { NodeDefinition } from "../nodes/define.js";
import type { ChoiceContext, InputSpec } from "../nodes/inputs.js";
import { CONVERTED, plain, tryConvert } from "../nodes/values.js";

// Facts about frozen nodes are computed once for all items; a node that an item changes is a copy.
export interface PreparedLink {
  readonly input: string;
  readonly spec: InputSpec;
  /** Id of the node that the value comes from, and the number of its output. */
  readonly source: string;
  readonly slot: number;
}

/** A node whose inputs have been read: links, and values that the graph itself holds. */
export interface PreparedNode {
  readonly id: string;
  /** Node of the graph that shows the events; differs from `id` inside an expansion. */
  readonly displayId: string;
  readonly definition: NodeDefinition;
  readonly links: readonly PreparedLink[];
  /** Converted values of the declared inputs that are not links. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Values that the graph holds but the node does not compute with. */
  readonly bends: readonly InputBend[];
  /** Inputs that the class does not declare: not passed to the node, yet part of its signature. */
  readonly unknown: readonly (readonly [string, unknown])[];
}

/** A value that a node computes with in place of the one that its input received; both in the words of `bendOf`. */
export interface InputBend {
  readonly input: string;
  readonly bend: string;
}

/** Bends of the values that the graph holds for a node, by declared input. */
export function bendsOf(
  specs: Readonly<Record<string, InputSpec>>,
  inputs: Readonly<Record<string, unknown>>,
  values: Readonly<Record<string, unknown>>,
): InputBend[] {
  return Object.keys(values).flatMap((input) => {
    const spec = specs[input]!;
    const received = Object.hasOwn(inputs, input) ? unwrap(inputs[input]) : undefined;
    const bend = CONVERTED.has(spec.type) ? bendOf(spec, received, values[input]) : undefined;
    return bend === undefined ? [] : [{ input, bend }];
  });
}

/** Returns x of `{ "__value__": x }`, the form in which a graph holds a list that is not a link. */
export function unwrap(value: unknown): unknown {
  return isPlainObject(value) && Object.hasOwn(value, "__value__") ? value.__value__ : value;
}

/** Whether a value of the first type may go to an input of the second: unions intersect, "*" is every type. */
export function typesMatch(output: string, input: string): boolean {
  if (output === input || output === "*" || input === "*") return true;
  if (!output.includes(",") && !input.includes(",")) return false;
  const accepted = new Set(input.split(",").map((member) => member.trim()));
  return accepted.has("*") || output.split(",").some((member) => member.trim() === "*" || accepted.has(member.trim()));
}

/** Inputs of a node that its class does not declare. */
export function unknownInputs(
  definition: NodeDefinition,
  inputs: Readonly<Record<string, unknown>>,
): [string, unknown][] {
  const unknown: [string, unknown][] = [];
  for (const name of keysInOrder(inputs)) {
    const isDeclared = Object.hasOwn(definition.inputs, name) || Object.hasOwn(definition.hidden, name);
    if (!isDeclared) unknown.push([name, inputs[name]]);
  }
  return unknown;
}

export function unknownInputWarning(at: { nodeId: string; node: string }, name: string, declared: readonly string[]) {
  const { suggestion, hint } = suggest(name, declared);
  const message = `Node ${at.nodeId} (${at.node}), input "${name}": the node has no such input; it is ignored.${hint}`;
  return { nodeId: at.nodeId, input: name, message, suggestion };
}

/** Warning about an input that the graph lacks, for example because its class gained it later. */
export function defaultWarning(at: { nodeId: string; node: string }, input: string, value: unknown) {
  const message = atNode(
    at,
    `input "${input}": the graph has no value for it; the default ${describe(value)} is used.`,
  );
  return { nodeId: at.nodeId, input, message };
}

/**
 * Reads the inputs of a node without checking them: numbers and booleans are converted if they fit, all other values
 * pass unchanged. A list that does not name a node is a value.
 */
export function prepareUnchecked(
  node: { id: string; displayId: string; definition: NodeDefinition; inputs: Readonly<Record<string, unknown>> },
  context: ChoiceContext,
  exists: (id: string) => boolean,
): PreparedNode {
  const { id, displayId, definition, inputs } = node;
  const links: PreparedLink[] = [];
  const values: Record<string, unknown> = {};
  for (const [input, spec] of Object.entries(definition.inputs)) {
    const raw = Object.hasOwn(inputs, input) ? inputs[input] : undefined;
    if (raw === undefined) {
      if (spec.optional && spec.options.default !== undefined) values[input] = spec.options.default;
      continue;
    }
    const isLink = Array.isArray(raw) && raw.length === 2 && typeof raw[0] === "string" && exists(raw[0]);
    if (isLink && Number.isInteger(Number(raw[1])) && Number(raw[1]) >= 0) {
      links.push({ input, spec, source: raw[0] as string, slot: Number(raw[1]) });
    } else {
      values[input] = looseValue(spec, unwrap(raw), context);
    }
  }
  const bends = bendsOf(definition.inputs, inputs, values);
  return { id, displayId, definition, links, values, bends, unknown: unknownInputs(definition, inputs) };
}

function looseValue(spec: InputSpec, value: unknown, context: ChoiceContext): unknown {
  const isNumeric = typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
  const asIs = spec.literal ? value : plain(value);
  if (!isNumeric && !(value instanceof NumberLiteral)) return asIs;
  const conversion = tryConvert(spec, value, { context, skipRange: true });
  return conversion.ok ? conversion.value : asIs;
}

/** Distinct sources of every node. */
export function linkedNodes(prepared: ReadonlyMap<string, PreparedNode>): Map<string, string[]> {
  const linked = new Map<string, string[]>();
  for (const [id, { links }] of prepared) {
    const sources = links.map(({ source }) => source);
    linked.set(id, sources.length < 2 ? sources : [...new Set(sources)]);
  }
  return linked;
}

/** An error that ends the validation of a node; `kind` is the name of the exception that ComfyUI reports for it. */
export type GraphFault = { readonly error: LatentkitError; readonly kind: string };
