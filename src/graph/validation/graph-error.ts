import { atNode, describe, ERROR_CODES, type ErrorCode, LatentkitError, nodeName } from "../../base/errors.js";
import { isPlainObject, MAX_DEPTH, NumberLiteral, pythonNumber } from "../../io/json/lossless.js";
import { pythonText } from "../../io/python-text.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import { choicesOf, expectedOf, isWidget, type Misfit, misfitError } from "../../nodes/values.js";

/** ComfyUI's clients see it as the kind of an error. */
const CANNOT_RUN = "Node cannot run here";
/** Nodes of a cycle that its sentence names; `extra_info` lists all. */
const MAX_CYCLE_NAMED = 20;

/** An error of a graph as data: the first four fields are ComfyUI's, the others are for people and programs. */
export interface GraphError {
  readonly type: string;
  readonly message: string;
  readonly details: string;
  readonly extra_info: Record<string, unknown>;
  readonly code: ErrorCode;
  /** Sentence that names node, input, value and what was expected. */
  readonly sentence: string;
  readonly input?: string;
  readonly received?: string;
  readonly expected?: string;
  readonly suggestion?: string;
}

/** Errors of one node, and the outputs that cannot be computed because of them. */
export interface NodeErrors {
  readonly errors: GraphError[];
  readonly dependent_outputs: string[];
  readonly class_type: string;
}

function fromError(
  { code, message, details: { input, received, expected, suggestion } }: LatentkitError,
  comfy: { type?: string; message: string; details: string; extra_info?: Record<string, unknown> },
): GraphError {
  const facts = Object.entries({ input, received, expected, suggestion }).filter(([, fact]) => fact !== undefined);
  return {
    type: ERROR_CODES[code].comfyType,
    extra_info: {},
    ...comfy,
    code,
    sentence: message,
    ...Object.fromEntries(facts),
  };
}

/** Error of a value that does not fit its input, in ComfyUI's words. */
export function valueError(misfit: Misfit, at: CheckedInput, received: unknown): GraphError {
  const { input, spec, context } = at;
  const error = misfitError(misfit, { nodeId: at.nodeId, node: at.node, input }, received);
  const extra = { input_name: input, input_config: inputConfig(at) };
  const print = (value: unknown) => (spec.type === "FLOAT" ? pythonNumber(Number(value)) : pythonText(value));
  switch (misfit.code) {
    case "input.missing":
      return fromError(error, {
        message: "Required input is missing",
        details: input,
        extra_info: { input_name: input },
      });
    case "input.below-minimum":
      return fromError(error, {
        message: `Value ${print(misfit.value)} smaller than min of ${print(spec.options.min)}`,
        details: input,
        extra_info: { ...extra, received_value: jsonValue(misfit.value) },
      });
    case "input.above-maximum":
      return fromError(error, {
        message: `Value ${print(misfit.value)} bigger than max of ${print(spec.options.max)}`,
        details: input,
        extra_info: { ...extra, received_value: jsonValue(misfit.value) },
      });
    case "input.not-in-list": {
      const choices = choicesOf(spec, context) ?? [];
      const list = choices.length > LISTED_CHOICES ? `(list of length ${choices.length})` : pythonText(choices);
      return fromError(error, {
        message: "Value not in list",
        details: `${input}: '${pythonText(misfit.value)}' not in ${list}`,
        extra_info: { ...extra, received_value: jsonValue(misfit.value) },
      });
    }
    default: {
      const reason = `expected ${misfit.expected}`;
      return fromError(error, {
        message: `Failed to convert an input value to a ${spec.type} value`,
        details: `${input}, ${pythonText(received)}, ${reason}`,
        extra_info: { ...extra, received_value: jsonValue(received), exception_message: reason },
      });
    }
  }
}

/** Error of a list that is not a link. */
export function badLink(at: CheckedInput, received: unknown): GraphError {
  const link = "a link [node id, slot]";
  const expected = isWidget(at.spec.type) ? `${expectedOf(at.spec, { context: at.context })} or ${link}` : link;
  return fromError(linkError(at, expected, pythonText(received)), {
    message: "Bad linked input, must be a length-2 list of [node_id, slot_index]",
    details: at.input,
    extra_info: { input_name: at.input, input_config: inputConfig(at), received_value: jsonValue(received) },
  });
}

export function typeMismatch(at: CheckedInput, received: string, link: readonly unknown[]): GraphError {
  const declared = pythonText(comfyTypeOf(at.spec, at.context));
  return fromError(linkError(at, at.spec.type, received, "link.type-mismatch"), {
    message: "Return type mismatch between linked nodes",
    details: `${at.input}, received_type(${received}) mismatch input_type(${declared})`,
    extra_info: {
      input_name: at.input,
      input_config: inputConfig(at),
      received_type: received,
      linked_node: jsonValue(link),
    },
  });
}

/** Error of an input whose link is wrong. */
export function linkError(
  at: CheckedInput,
  expected: string,
  received: string,
  code: ErrorCode = "link.bad",
): LatentkitError {
  const { nodeId, node, input } = at;
  const message = atNode(at, `input "${input}": expected ${expected}, received ${received}.`);
  return new LatentkitError(code, message, { nodeId, node, input, expected, received });
}

/** Error of a node's own validation; `input` is undefined if it did not read one. */
export function customError(
  at: { nodeId: string; node: string },
  input: string | undefined,
  refusal: string | false | LatentkitError,
): GraphError {
  const error = refusal instanceof LatentkitError ? namedError(at, input, refusal) : refusalError(at, input, refusal);
  // the message names the input already
  const reason = refusal instanceof LatentkitError ? refusal.message.replace(`input "${input}": `, "") : refusal || "";
  return fromError(error, {
    type: "custom_validation_failed",
    message: "Custom validation failed for node",
    details: [input, reason].filter((part) => part !== undefined && part !== "").join(" - "),
    extra_info: input === undefined ? {} : { input_name: input },
  });
}

function refusalError(at: { nodeId: string; node: string }, input: string | undefined, reason: string | false) {
  const subject = input === undefined ? nodeName(at) : atNode(at, `input "${input}"`);
  const message = `${subject}: ${reason ? reason.replace(/\.$/, "") : "the node refuses it"}.`;
  return new LatentkitError("input.invalid", message, { ...at, input });
}

const namedError = (at: { nodeId: string; node: string }, input: string | undefined, error: LatentkitError) =>
  new LatentkitError(error.code, atNode(at, error.message), { ...error.details, ...at, input }, { cause: error });

/** Error of a validation that failed, at an output node or (`via`) at a node that an input of another links to. */
export function validationFailure(
  error: LatentkitError,
  kind: string,
  via: { at: CheckedInput; link: readonly unknown[] } | undefined,
): GraphError {
  if (via === undefined) {
    return fromError(error, {
      type: "exception_during_validation",
      message: "Exception when validating node",
      details: error.message,
      extra_info: { exception_type: kind },
    });
  }
  return fromError(error, {
    type: "exception_during_inner_validation",
    message: "Exception when validating inner node",
    details: error.message,
    extra_info: {
      input_name: via.at.input,
      input_config: inputConfig(via.at),
      exception_message: error.message,
      exception_type: kind,
      linked_node: jsonValue(via.link),
    },
  });
}

/** Error of a node that an offline run refuses, with any inputs. */
export function networkError(at: { nodeId: string; node: string }): GraphError {
  const message = `${nodeName(at)}: the node reaches the network or uses a key, which is not allowed here (allowNetwork, allow_network, --offline).`;
  return fromError(new LatentkitError("network.forbidden", message, at), {
    message: "Node may not reach the network",
    details: at.node,
  });
}

/** Error of a node that can never run here: `what` cannot, for the reason or the file that `where` names. */
export function hostError(
  at: { nodeId: string; node: string; input?: string },
  what: string,
  where: string,
  received?: string,
  code: ErrorCode = "host.missing",
): GraphError {
  const message = `The graph cannot run here: ${what} (node ${at.nodeId}, ${where}).`;
  return fromError(new LatentkitError(code, message, { ...at, received: received && describe(received) }), {
    message: CANNOT_RUN,
    details: at.input ?? at.node,
    extra_info: at.input === undefined ? {} : { input_name: at.input },
  });
}

/** Whether an error is one of `hostError`. */
export const isOfHost = ({ message }: GraphError): boolean => message === CANNOT_RUN;

export function cycleError(ids: readonly string[]): GraphError {
  const more = ids.length - MAX_CYCLE_NAMED;
  const named = more > 0 ? [...ids.slice(0, MAX_CYCLE_NAMED), `${more} more`] : ids;
  const cycle = `cycle: ${[...named, ids[0]].join(" → ")}`;
  const error = new LatentkitError("graph.cycle", `The graph has a ${cycle}.`, { nodeId: ids[0] });
  return fromError(error, { message: "Dependency cycle detected", details: cycle, extra_info: { cycle: ids } });
}

/** Error of the whole graph, in ComfyUI's words if it has them. */
export function promptError(error: LatentkitError): GraphError {
  const { nodeId, received, input } = error.details;
  const details = nodeId === undefined ? "" : `Node ID '#${nodeId}'`;
  if (error.code === "graph.unknown-class") {
    const name = received === "null" ? "None" : received;
    const all = error.details.unknownClasses?.map(({ classType, count, nodeIds, suggestion }) => ({
      class_type: classType,
      count,
      node_ids: nodeIds,
      suggestion,
    }));
    const extra_info = all === undefined ? {} : { unknown_classes: all };
    return fromError(error, { message: `Cannot execute because node ${name} does not exist.`, details, extra_info });
  }
  if (error.code === "graph.invalid" && input === "class_type") {
    const message = "Cannot execute because a node is missing the class_type property.";
    return fromError(error, { message, details });
  }
  if (error.code === "graph.no-outputs") return fromError(error, { message: "Prompt has no outputs", details });
  if (error.code === "graph.empty") return fromError(error, { message: "No prompt provided", details });
  return fromError(error, { message: error.message, details });
}

/** Error of a graph all of whose outputs failed; the details list the errors of the output nodes themselves. */
export function outputsFailed(ownErrors: readonly GraphError[]): GraphError {
  const error = new LatentkitError("graph.outputs-failed", "No output of the graph can be computed.");
  const lines = ownErrors.map(({ message, details }) => `${message}: ${details}`);
  return fromError(error, { message: "Prompt outputs failed validation", details: lines.join("\n") });
}

/** An input of a node, with the facts for its description. */
export interface CheckedInput {
  readonly nodeId: string;
  readonly node: string;
  readonly input: string;
  readonly spec: InputSpec;
  readonly context: ChoiceContext;
}

/** Choices beyond this number are counted in the details, and left out of input_config. */
const LISTED_CHOICES = 20;

/** Declaration of the input in ComfyUI's form: [type or list of choices, options]; null for long lists. */
function inputConfig({ spec, context }: CheckedInput): unknown {
  const choices = choicesOf(spec, context);
  if (choices !== undefined && choices.length > LISTED_CHOICES) return null;
  return jsonValue([comfyTypeOf(spec, context), spec.options]);
}

/** Type of the input in ComfyUI's form: a list of choices, or the name of the type. */
function comfyTypeOf(spec: InputSpec, context: ChoiceContext): unknown {
  const isListed = spec.type === "COMBO" && spec.options.options === undefined;
  return isListed ? (choicesOf(spec, context) ?? spec.type) : spec.type;
}

/** Makes a value printable as JSON: integers beyond 2^53 become text. */
function jsonValue(value: unknown, depth = 0): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof NumberLiteral) return Number(value);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => jsonValue(item, depth + 1));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, jsonValue(item, depth + 1)]));
}
