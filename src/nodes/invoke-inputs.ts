import { atNode, describe, inputError, LatentkitError, nodeName } from "../base/errors.js";
import { suggest } from "../base/suggest.js";
import { parseJson } from "../io/json/lossless.js";
import { bendOf } from "./bends.js";
import type { HiddenType, NodeDefinition } from "./define.js";
import type { ChoiceContext, InputSpec } from "./inputs.js";
import { checkSocket } from "./sockets.js";
import { CONVERTED, convertInput, expectedOf } from "./values.js";

/**
 * Inputs of a node as it takes them, from those that a program gives. `log` receives warnings: an input that the node does
 * not have, a value that it does not compute with. Fails as `invokeNode` for a wrong input.
 */
export function readInputs(
  definition: NodeDefinition,
  given: Readonly<Record<string, unknown>>,
  context: ChoiceContext,
  log: (message: string) => void,
): Record<string, unknown> {
  warnOfUnknownInputs(definition, given, log);
  const received = readAll(definition, given, context);
  warnOfBends(definition, given, received, log);
  validateInputs(definition, received, context);
  return received;
}

function warnOfUnknownInputs(definition: NodeDefinition, inputs: object, log: (message: string) => void): void {
  for (const name of Object.keys(inputs)) {
    if (Object.hasOwn(definition.inputs, name)) continue;
    const { hint } = suggest(name, Object.keys(definition.inputs));
    log(`${definition.key} has no input ${describe(name)}; its value is not used.${hint}`);
  }
}

function warnOfBends(
  { key, inputs: specs }: NodeDefinition,
  given: Readonly<Record<string, unknown>>,
  received: Readonly<Record<string, unknown>>,
  log: (message: string) => void,
): void {
  for (const [input, spec] of Object.entries(specs)) {
    if (!CONVERTED.has(spec.type) || !Object.hasOwn(given, input)) continue;
    const [values, used] = [given[input], received[input]].map((value) => (Array.isArray(value) ? value : [value]));
    const bend = values!.map((value, i) => bendOf(spec, value, used![i])).find((sentence) => sentence !== undefined);
    if (bend !== undefined) log(`${key}, input "${input}": ${bend}.`);
  }
}

function readAll(
  definition: NodeDefinition,
  inputs: Readonly<Record<string, unknown>>,
  context: ChoiceContext,
): Record<string, unknown> {
  const received: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(definition.inputs)) {
    const given = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
    const value = given === undefined ? spec.options.default : given;
    const at = { node: definition.key, input: name };
    if (isMissing(spec, value)) throw inputError("input.missing", at, expectedOf(spec, { context }), value);
    if (!definition.inputIsList) received[name] = readValue(spec, value, at, context);
    else if (value !== undefined && value !== null) {
      const items = Array.isArray(value) ? value : [value];
      received[name] = items.map((item) => readValue(spec, item, at, context));
    }
  }
  return received;
}

/** Whether a required input is absent; null is a value for an input of any type. */
const isMissing = (spec: InputSpec, value: unknown): boolean =>
  !spec.optional && (value === undefined || (value === null && spec.type !== "*"));

function readValue(
  spec: InputSpec,
  value: unknown,
  at: { node: string; input: string },
  context: ChoiceContext,
): unknown {
  if (spec.type === "*") return value;
  if (CONVERTED.has(spec.type)) return convertInput(spec, value ?? undefined, at, { context });
  return value === undefined || value === null ? spec.options.default : checkSocket(spec.type, value, at);
}

function validateInputs(definition: NodeDefinition, received: Record<string, unknown>, choices: ChoiceContext): void {
  if (definition.validate === undefined) return;
  const inputTypes = Object.fromEntries(Object.keys(received).map((name) => [name, definition.inputs[name]!.type]));
  // an input that is present without a value would be a linked one
  const given = Object.fromEntries(Object.entries(received).filter(([, value]) => value !== undefined));
  const result = definition.validate(given, { inputTypes, inputDir: choices.inputDir, files: choices.files });
  if (result === undefined || result === true) return;
  const faults: (readonly [string | undefined, string | LatentkitError])[] =
    typeof result === "object"
      ? Object.entries(result)
      : [[undefined, result === false ? "the node refuses these inputs" : result]];
  const [first] = faults;
  if (first === undefined) return;
  const [input, reason] = first;
  const at = { node: definition.key, input };
  if (reason instanceof LatentkitError)
    throw new LatentkitError(reason.code, atNode(at, reason.message), { ...reason.details, ...at }, { cause: reason });
  const subject = input === undefined ? nodeName(at) : atNode(at, `input "${input}"`);
  throw new LatentkitError("input.invalid", `${subject}: ${reason.replace(/(?<!\.)\.+$/, "")}.`, at);
}

/** Hidden inputs by the node's own names for them. */
export function readHidden(
  definition: NodeDefinition,
  hidden: Readonly<Partial<Record<"prompt" | "extra_pnginfo" | "unique_id", unknown>>>,
): Record<string, unknown> {
  const id = hidden.unique_id;
  const values: Readonly<Record<HiddenType, unknown>> = {
    PROMPT: readJson(hidden.prompt),
    EXTRA_PNGINFO: readJson(hidden.extra_pnginfo),
    UNIQUE_ID: id === undefined || id === null ? undefined : String(id),
  };
  return Object.fromEntries(Object.entries(definition.hidden).map(([name, type]) => [name, values[type]]));
}

const readJson = (value: unknown): unknown =>
  typeof value === "string" ? parseJson(value, { nonFinite: true }) : (value ?? undefined);
