import { describe, LatentkitError } from "../base/errors.js";
import {
  checkOptions,
  FLAG,
  FUNCTION,
  isKeyed,
  isObject,
  type OptionRules,
  type Rule,
  TEXT,
  VALUES,
} from "../base/options.js";
import { suggest } from "../base/suggest.js";
import { type FilesByName, givenBytes, isAddress } from "../io/files/input-text.js";
import { isPlainObject } from "../io/json/lossless.js";
import { type ComfyInput, type InputSpec, toInputSpec } from "./inputs.js";
import { type OutputSource, outputSpecs, type ResultOf } from "./outputs.js";
import type { GivenInputs, HiddenType, NodeDefinition, NodeResult, NodeSource, TypedNode } from "./types.js";

export type * from "./types.js";

/**
 * Defines a node. Fails with usage.invalid if a field is missing, wrong or unknown: helper functions belong beside the
 * source, not in it. Deprecated `ext …` nodes get their category and display name from their key.
 */
export function defineNode<
  const I extends Record<string, InputSpec | ComfyInput>,
  const H extends Record<string, HiddenType> = Record<never, never>,
  const L extends boolean = false,
  const K extends string = string,
  const O extends OutputSource = OutputSource,
>(source: NodeSource<I, H, L, K, O>): TypedNode<K, GivenInputs<I, L>, ResultOf<O>> {
  checkSource(source);
  const { key } = source;
  const inputs = Object.fromEntries(Object.entries(source.inputs).map(([name, input]) => [name, toInputSpec(input)]));
  const deprecated = source.deprecated ?? false;
  const bind = <F extends (...args: never[]) => unknown>(method: F | undefined): F | undefined =>
    method?.bind(source) as F | undefined;
  return Object.freeze({
    key,
    displayName: source.displayName ?? (deprecated ? `${titleOf(key)} (🚫Deprecated)` : key),
    category: source.category ?? (deprecated ? "ext/🚫 Deprecated" : key.startsWith("ext ") ? "ext" : "core"),
    description: source.description ?? "",
    deprecated,
    inputs,
    outputs: outputSpecs(key, source.outputs, source.outputIsList),
    hidden: source.hidden ?? {},
    inputIsList: source.inputIsList ?? false,
    outputNode: source.outputNode ?? false,
    writesFiles: source.writesFiles ?? false,
    hasUi: source.hasUi ?? false,
    notIdempotent: source.notIdempotent ?? false,
    reachesNetwork: source.reachesNetwork ?? false,
    usesKey: source.usesKey ?? false,
    cacheVersion: source.cacheVersion,
    validate: bind(source.validate),
    isChanged: bind(source.isChanged),
    checkLazy: bind(source.checkLazy),
    noiseStream: bind(source.noiseStream),
    run: source.run.bind(source) as NodeDefinition["run"],
  });
}

/** Whether an offline run refuses the node, also because of an address among its input files. */
export function needsNetwork(
  definition: NodeDefinition,
  values: Readonly<Record<string, unknown>> = {},
  files?: FilesByName,
): boolean {
  if (definition.reachesNetwork || definition.usesKey) return true;
  for (const [input, { options }] of Object.entries(definition.inputs)) {
    if (options.image_upload !== true) continue;
    const name = values[input];
    if (isAddress(name) && givenBytes(files, name) === undefined) return true;
  }
  return false;
}

/** Title of a key: "ext latentNoisy" becomes LatentNoisy. */
function titleOf(key: string): string {
  const name = key.replace(/^\S+ /, "");
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** An output value that keeps its readers from running: silently, or with a message as an event at each direct reader. */
export class Blocker {
  readonly message: string | undefined;
  constructor(message?: string) {
    this.message = message;
  }
}

/** An output value that stops the nodes that read it: silently, or with a message as an event at each direct reader. */
export const block = (message?: string): Blocker => new Blocker(message);

const RESULT_KEYS: readonly string[] = ["result", "ui", "expand"] satisfies (keyof NodeResult)[];

/**
 * Brings the return value of `run`, in any of its forms, into output order. A blocker alone blocks every output. Throws
 * node.failed if it is not one value for each declared output.
 */
export function toResult(
  { outputs }: NodeDefinition,
  returned: unknown,
): { result: unknown[]; ui?: Record<string, unknown[]>; expand?: Record<string, unknown> } {
  const isNodeResult =
    isObject(returned) &&
    RESULT_KEYS.some((key) => Object.hasOwn(returned, key)) &&
    !outputs.some(({ name }) => RESULT_KEYS.includes(name));
  if (!isNodeResult) return { result: valuesOf(outputs, returned) };
  const other = Object.keys(returned).find((key) => !RESULT_KEYS.includes(key));
  if (other !== undefined) {
    const first = RESULT_KEYS.find((key) => Object.hasOwn(returned, key));
    throw misreturned(`${describe(other)} beside "${first}"; values of outputs go into "result"`, outputs);
  }
  const { result, ui, expand } = returned as NodeResult;
  return { result: valuesOf(outputs, result), ui: ui as Record<string, unknown[]> | undefined, expand };
}

type Outputs = NodeDefinition["outputs"];

/** One value for each output, in their order. Throws node.failed. */
function valuesOf(outputs: Outputs, returned: unknown): unknown[] {
  if (returned instanceof Blocker) return outputs.map(() => returned);
  // as in ComfyUI, a node may return an empty list: its readers receive no value
  if (Array.isArray(returned) && returned.length === 0) return returned;
  const values = Array.isArray(returned) ? returned : namedValues(outputs, returned ?? {});
  if (values.length !== outputs.length) throw misreturned(describe(values), outputs);
  const missing = outputs.find((_, slot) => values[slot] === undefined);
  if (missing !== undefined) throw misreturned(`nothing for its output ${describe(missing.name)}`, outputs);
  return values;
}

function namedValues(outputs: Outputs, returned: object): unknown[] {
  const isOutput = (key: string) => outputs.some(({ name }) => name === key);
  const isByName = isObject(returned) && (isPlainObject(returned) || outputs.some(({ name }) => name in returned));
  if (!isByName) throw misreturned(describe(returned), outputs);
  const unknown = Object.keys(returned).find((key) => !isOutput(key));
  if (unknown === undefined) return outputs.map(({ name }) => returned[name]);
  const names = outputs.map(({ name }) => name);
  throw misreturned(`${describe(unknown)}, which is not an output`, outputs, suggest(unknown, names).hint);
}

function misreturned(what: string, outputs: Outputs, hint = ""): LatentkitError {
  const names = outputs.map(({ name }) => name).join(", ");
  const declared = names === "" ? "it declares no outputs" : `it declares ${names}`;
  return new LatentkitError("node.failed", `The node returned ${what}; ${declared}.${hint}`);
}

const FLAGS: Rule = [
  "a list of true and false",
  (value) => Array.isArray(value) && value.every((flag) => typeof flag === "boolean"),
];
const OUTPUTS: Rule = ["types by name, or a list of { name, type }", (value) => Array.isArray(value) || isKeyed(value)];

type Source = NodeSource<Record<string, InputSpec | ComfyInput>, Record<string, HiddenType>, boolean>;

const SOURCE_RULES: OptionRules<Source> = {
  key: ["a text", (value) => typeof value === "string" && value !== ""],
  displayName: TEXT,
  category: TEXT,
  description: TEXT,
  deprecated: FLAG,
  inputs: VALUES,
  outputs: OUTPUTS,
  hidden: VALUES,
  inputIsList: FLAG,
  outputIsList: FLAGS,
  outputNode: FLAG,
  writesFiles: FLAG,
  hasUi: FLAG,
  notIdempotent: FLAG,
  reachesNetwork: FLAG,
  usesKey: FLAG,
  cacheVersion: TEXT,
  validate: FUNCTION,
  isChanged: FUNCTION,
  checkLazy: FUNCTION,
  noiseStream: FUNCTION,
  run: FUNCTION,
};

const HIDDEN_TYPES: Readonly<Record<HiddenType, true>> = { PROMPT: true, EXTRA_PNGINFO: true, UNIQUE_ID: true };

/** Fails with usage.invalid if a field of a node's source is missing, wrong or unknown, or an input is not one. */
function checkSource(source: unknown): asserts source is Source {
  checkOptions("defineNode", source, SOURCE_RULES, ["key", "inputs", "outputs", "run"]);
  const { key, inputs, hidden = {} } = source;
  for (const [name, input] of Object.entries(inputs)) {
    const type: unknown = Array.isArray(input) ? input[0] : (input as InputSpec | null)?.type;
    if (typeof type === "string" || (Array.isArray(input) && Array.isArray(type))) continue;
    throw wrong(`${key}, input "${name}"`, "image(), int() or another input, or [type, options]", input);
  }
  for (const [name, type] of Object.entries(hidden)) {
    if (typeof type === "string" && Object.hasOwn(HIDDEN_TYPES, type)) continue;
    throw wrong(`${key}, hidden "${name}"`, Object.keys(HIDDEN_TYPES).join(", "), type);
  }
}

const wrong = (subject: string, expected: string, received: unknown): LatentkitError =>
  new LatentkitError("usage.invalid", `defineNode: ${subject}: expected ${expected}, received ${describe(received)}.`);
