import { describe, LatentkitError, messageOf, nodeName } from "../../base/errors.js";
import { isFrozenJson, isPlainObject, recall } from "../../io/json/lossless.js";
import { pythonText } from "../../io/python-text.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import { defaultOf, expectedOf, isWidget, type Misfit, tryConvert } from "../../nodes/values.js";
import { bendsOf, type GraphFault, type InputBend, type PreparedLink, typesMatch, unwrap } from "../prepared.js";
import {
  badLink,
  type CheckedInput,
  customError,
  type GraphError,
  linkError,
  typeMismatch,
  valueError,
} from "./graph-error.js";

const CHECKED = Symbol("checked");

// Widgets that older editors export (upload, control_after_generate) pass without a warning.
/**
 * Checks a node like `checkNode`, once for a frozen node of the package that passed among the same classes. A file that
 * it names and that is removed later fails when it is read.
 */
export function checkCached(
  id: string,
  raw: Readonly<Record<string, unknown>>,
  definitions: ReadonlyMap<string, NodeDefinition>,
  context: ChoiceContext,
  builtIns: Registry | undefined,
): CheckedNode {
  const definition = definitions.get(id)!;
  const check = () => checkNode(id, raw, definitions, context);
  if (!isFrozenJson(raw) || builtIns?.get(definition.key) !== definition) return check();
  const dependencies = [
    definition,
    context.host,
    context.inputDir,
    context.files,
    ...linkedClasses(raw.inputs, definitions),
  ];
  return recall(raw, CHECKED, check, dependencies, ({ errors, fault }) => fault === undefined && errors.length === 0);
}

function linkedClasses(inputs: unknown, definitions: ReadonlyMap<string, NodeDefinition>): unknown[] {
  const links = isPlainObject(inputs) ? Object.values(inputs).filter(Array.isArray) : [];
  return links.map(([source]) => definitions.get(source as string));
}

interface CheckedNode {
  readonly errors: GraphError[];
  readonly links: PreparedLink[];
  readonly values: Record<string, unknown>;
  readonly bends: readonly InputBend[];
  /** Inputs that the graph lacks and that have a default, which is among the values. */
  readonly defaults: string[];
  /** Error that ended the validation; the other fields are then useless. */
  readonly fault?: GraphFault;
}

/** Checks presence, types, ranges, choices and links of the inputs of one node, then lets the node validate them. */
function checkNode(
  id: string,
  raw: Readonly<Record<string, unknown>>,
  definitions: ReadonlyMap<string, NodeDefinition>,
  context: ChoiceContext,
): CheckedNode {
  const definition = definitions.get(id)!;
  const node = raw.class_type as string;
  const checked: CheckedNode = { errors: [], links: [], values: {}, bends: [], defaults: [] };
  if (!isPlainObject(raw.inputs)) return { ...checked, fault: noInputs(id, node) };
  const inputs = raw.inputs;
  const types: Record<string, string> = {};
  const mismatches: { input: string; error: GraphError }[] = [];
  // a graph saved before the class gained an input has the others; one that lacks several was never complete
  const required = Object.values(definition.inputs).filter(({ optional }) => !optional);
  const isOlder = required.length === 1 || Object.keys(definition.inputs).some((key) => Object.hasOwn(inputs, key));
  for (const [input, spec] of Object.entries(definition.inputs)) {
    const at: CheckedInput = { nodeId: id, node, input, spec, context };
    const raw = Object.hasOwn(inputs, input) ? inputs[input] : undefined;
    const isNewer = isOlder && raw === undefined && !spec.optional && isWidget(spec.type);
    const fallback = isNewer ? defaultOf(spec) : undefined;
    if (fallback !== undefined) checked.defaults.push(input);
    const value = fallback ?? (Array.isArray(raw) ? raw : unwrap(raw));
    if (Array.isArray(raw)) {
      const link = readLink(raw, at, definitions);
      if ("fault" in link) return { ...checked, fault: link.fault };
      if ("error" in link) checked.errors.push(link.error);
      else {
        types[input] = link.type;
        if (typesMatch(link.type, spec.type)) checked.links.push(link.link);
        else mismatches.push({ input, error: typeMismatch(at, link.type, raw) });
      }
    } else if (value === undefined || value === null || isWidget(spec.type)) {
      // ranges are checked after the node's own validation, which may exempt inputs
      const conversion = tryConvert(spec, value, {
        context,
        anyText: true,
        skipRange: definition.validate !== undefined,
      });
      if (!conversion.ok) checked.errors.push(valueError(conversion.misfit, at, value));
      else if (conversion.value !== undefined) checked.values[input] = conversion.value;
    } else {
      checked.errors.push(valueError(needsLink(spec, value), at, value));
    }
  }
  const whole =
    definition.validate === undefined
      ? addMismatches(checked, mismatches, false)
      : checkCustom(checked, mismatches, { id, node, definition, inputs, types, context });
  return { ...whole, bends: bendsOf(definition.inputs, inputs, whole.values) };
}

interface CustomNode {
  readonly id: string;
  readonly node: string;
  readonly definition: NodeDefinition;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly types: Readonly<Record<string, string>>;
  readonly context: ChoiceContext;
}

function checkCustom(
  checked: CheckedNode,
  mismatches: readonly { error: GraphError }[],
  { id, node, definition, inputs, types, context }: CustomNode,
): CheckedNode {
  const values: Record<string, unknown> = {};
  for (const input of checked.defaults) values[input] = checked.values[input];
  for (const input of Object.keys(definition.inputs)) {
    if (!Object.hasOwn(inputs, input)) continue;
    // a value that could not be converted is passed unconverted
    values[input] = Array.isArray(inputs[input]) ? undefined : (checked.values[input] ?? unwrap(inputs[input]));
  }
  const custom = validateCustom(definition, { nodeId: id, node }, values, types, context);
  if ("fault" in custom) return { ...checked, fault: custom.fault };
  for (const [input, spec] of Object.entries(definition.inputs)) {
    if (!Object.hasOwn(checked.values, input) || custom.read.has(input)) continue;
    const value = Object.hasOwn(inputs, input) ? unwrap(inputs[input]) : checked.values[input];
    const conversion = tryConvert(spec, value, { context, anyText: true });
    if (conversion.ok) checked.values[input] = conversion.value;
    else checked.errors.push(valueError(conversion.misfit, { nodeId: id, node, input, spec, context }, value));
  }
  checked.errors.push(...custom.errors);
  return addMismatches(checked, mismatches, custom.read.has("input_types"));
}

/** A node that reads the types of its links checks them itself. */
function addMismatches(
  checked: CheckedNode,
  mismatches: readonly { error: GraphError }[],
  isExempt: boolean,
): CheckedNode {
  if (!isExempt) checked.errors.push(...mismatches.map(({ error }) => error));
  return checked;
}

function noInputs(nodeId: string, node: string): GraphFault {
  const message = `Node ${nodeId} (${node}): expected inputs, received none.`;
  return { error: new LatentkitError("graph.invalid", message, { nodeId, node, input: "inputs" }), kind: "KeyError" };
}

const needsLink = (spec: InputSpec, value: unknown): Misfit => ({
  code: "input.wrong-type",
  expected: `a link to ${expectedOf(spec)}`,
  value,
});

type ReadLink = { link: PreparedLink; type: string } | { error: GraphError } | { fault: GraphFault };

function readLink(
  value: readonly unknown[],
  at: CheckedInput,
  definitions: ReadonlyMap<string, NodeDefinition>,
): ReadLink {
  const [source, slot] = value;
  const isNegative = typeof slot === "number" && slot < 0;
  if (value.length !== 2 || typeof slot === "boolean" || isNegative) return { error: badLink(at, value) };
  const origin = typeof source === "string" ? definitions.get(source) : undefined;
  if (origin === undefined) {
    const [expected, received] =
      typeof source === "string"
        ? ["a link to a node of the graph", `node ${source}`]
        : ["a node's id as text", pythonText(source)];
    return { fault: { error: linkError(at, expected, received), kind: "KeyError" } };
  }
  if (typeof slot !== "number" || !Number.isInteger(slot)) {
    // quotation marks show that "0" is not a number
    const received = typeof slot === "string" ? describe(slot) : pythonText(slot);
    return { fault: { error: linkError(at, "the number of an output", received), kind: "TypeError" } };
  }
  const output = origin.outputs[slot];
  if (output === undefined) {
    const { length } = origin.outputs;
    const expected =
      length === 1 ? `output 0 of node ${source}, its only one` : `one of the ${length} outputs of node ${source}`;
    return { fault: { error: linkError(at, expected, `output ${slot}`), kind: "IndexError" } };
  }
  return { link: { input: at.input, spec: at.spec, source: source as string, slot }, type: output.type };
}

/** Result of a node's own validation, and the inputs that it read: "input_types" if it read the types of links. */
type CustomValidation =
  | { readonly errors: readonly GraphError[]; readonly read: ReadonlySet<string> }
  | { readonly fault: GraphFault };

/**
 * Lets a node validate its inputs. Values are converted, linked inputs are present but undefined, absent ones are not
 * present. The node must return at once, not a promise.
 */
function validateCustom(
  definition: NodeDefinition,
  at: { nodeId: string; node: string },
  values: Readonly<Record<string, unknown>>,
  inputTypes: Readonly<Record<string, string>>,
  { inputDir, files, hints }: ChoiceContext = {},
): CustomValidation {
  const read = new Set<string>();
  const inputs = new Proxy<Record<string, unknown>>(
    { ...values },
    {
      get(target, key, receiver) {
        if (typeof key !== "string") return Reflect.get(target, key, receiver);
        if (Object.hasOwn(target, key)) read.add(key);
        if (key !== "input_types" || Object.hasOwn(target, key)) return Reflect.get(target, key, receiver);
        read.add(key);
        return inputTypes;
      },
    },
  );
  const context = {
    inputDir,
    files,
    hints,
    get inputTypes() {
      read.add("input_types");
      return inputTypes;
    },
  };
  let result: unknown;
  try {
    result = definition.validate!(inputs, context);
  } catch (error) {
    return { fault: faultOf(error, at) };
  }
  if (result instanceof Promise) {
    // a late result is useless
    result.catch(() => undefined);
    return { fault: faultOf(new TypeError("validate must return at once, received a promise"), at) };
  }
  if (result === true || result === undefined) return { errors: [], read };
  if (isPlainObject(result)) {
    const errors = Object.entries(result).map(([input, reason]) =>
      customError(at, input, reason instanceof LatentkitError ? reason : String(reason)),
    );
    return { errors, read };
  }
  const reason = typeof result === "string" ? result : false;
  const blamed = read.size === 0 ? [undefined] : [...read];
  return { errors: blamed.map((input) => customError(at, input, reason)), read };
}

function faultOf(error: unknown, at: { nodeId: string; node: string }): GraphFault {
  const message = `${nodeName(at)}: its validation failed: ${messageOf(error).replace(/\.$/, "")}.`;
  return {
    error: new LatentkitError("validation.exception", message, { ...at }, { cause: error }),
    kind: error instanceof Error ? error.name : "Error",
  };
}
