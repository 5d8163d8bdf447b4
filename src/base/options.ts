import { isDetached } from "./bytes.js";
import { describe, type ErrorCode, LatentkitError, valueError } from "./errors.js";
import { suggest } from "./suggest.js";

/** Expected value of an option in words, and the check of a value. */
export type Rule = readonly [expected: string, holds: (value: unknown) => boolean];

/** One rule for each option of a type: a missing rule does not compile. */
export type OptionRules<Options> = { readonly [Key in keyof Options]-?: Rule };

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const hasMethods = (value: unknown, ...methods: readonly string[]): boolean =>
  isObject(value) && methods.every((method) => typeof value[method] === "function");

/** Whether a value has keys to read: the content of a Map, a Date or a promise would be ignored. */
export function isKeyed(value: unknown): value is Record<string, unknown> {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.keys(value).length > 0;
}

const isString = (value: unknown): boolean => typeof value === "string";
const isPath = (value: unknown): boolean => typeof value === "string" && value !== "" && !value.includes("\0");

/** Rule of an option whose value its function checks itself. */
export const CHECKED_LATER: Rule = ["a value", () => true];
/** Rule of such an option, for which null must not count as absent. */
export const checkedLater = (expected: string): Rule => [expected, (value) => value !== null];
export const FLAG: Rule = ["true or false", (value) => typeof value === "boolean"];
export const TEXT: Rule = ["a string", isString];
export const TEXTS: Rule = ["an array of strings", (value) => Array.isArray(value) && value.every(isString)];
export const COUNT: Rule = ["a whole number", (value) => Number.isSafeInteger(value) && (value as number) >= 0];
export const FILE: Rule = ["the path of a file", isPath];
export const FOLDER: Rule = ["the path of a folder", isPath];
export const FUNCTION: Rule = ["a function", (value) => typeof value === "function"];
export const OBJECT: Rule = ["an object", isObject];
export const VALUES: Rule = ["an object of key-value pairs", isKeyed];
export const FILES: Rule = [
  "an object that maps names to Uint8Arrays whose memory was not moved to another thread",
  (value) =>
    isKeyed(value) && Object.values(value).every((bytes) => bytes instanceof Uint8Array && !isDetached(bytes.buffer)),
];
export const NAMES: Rule = [
  "an object that maps names to names",
  (value) => isKeyed(value) && Object.values(value).every(isString),
];
export const REGISTRY: Rule = ["a registry made by createRegistry", (value) => hasMethods(value, "has", "get", "keys")];
export const HOST: Rule = [
  "a host, such as createPreviewHost returns",
  (value) => hasMethods(value, "checkpoints", "loadCheckpoint"),
];
export const SIGNAL: Rule = [
  "an AbortSignal",
  (value) => hasMethods(value, "addEventListener", "removeEventListener") && "aborted" in (value as object),
];

/**
 * Checks options by their rules. Throws for anything but an object, for the first key without a rule (with a suggestion)
 * and for the first value that breaks its rule. An undefined option counts as absent, and throws only if it is required.
 */
export function checkOptions<Options extends object>(
  functionName: string,
  options: unknown,
  rules: OptionRules<Options>,
  required: readonly (keyof Options & string)[] = [],
  code: ErrorCode = "usage.invalid",
): asserts options is Options {
  if (!isObject(options)) throw valueError(code, functionName, "an object of options", options);
  let isEmpty = true;
  for (const key in options) {
    isEmpty = false;
    const value = options[key];
    if (value === undefined) continue;
    // faster than hasOwn and destructuring; an inherited property is not a list
    const rule: unknown = rules[key as unknown as keyof Options];
    if (!Array.isArray(rule)) throw unknownOption(code, functionName, key, rules);
    if (!rule[1](value)) throw valueError(code, key, rule[0], value);
  }
  if (isEmpty && !isKeyed(options)) throw valueError(code, functionName, "an object of options", options);
  for (const key of required) if (options[key] === undefined) throw valueError(code, key, rules[key][0], undefined);
}

const SET = { option: "set", use: (key: string) => `set: { ${key}: … }` };
const OUTPUT = { option: "outputDir", use: () => "outputDir" };

/** Names that people give to what an option does, with how that is used. */
const MEANT: ReadonlyMap<string, { readonly option: string; use(key: string): string }> = new Map([
  ...["prompt", "negative", "seed", "steps", "width", "height"].map((key) => [key, SET] as const),
  ...["out", "outDir", "output"].map((key) => [key, OUTPUT] as const),
  ["models", { option: "host", use: () => "host: createCheckpointHost({ models: … })" }],
]);

function unknownOption(code: ErrorCode, functionName: string, key: string, rules: object): LatentkitError {
  const meant = MEANT.get(key);
  const { suggestion, hint } =
    meant !== undefined && Object.hasOwn(rules, meant.option)
      ? { suggestion: meant.option, hint: ` Did you mean ${meant.use(key)}?` }
      : suggest(key, Object.keys(rules));
  const received = describe(key);
  return new LatentkitError(code, `${functionName}: unknown option ${received}.${hint}`, { received, suggestion });
}

/** Rules of a function that leaves some options to another. */
export function rulesWithout<Rules extends object, Key extends keyof Rules & string>(
  rules: Rules,
  ...keys: readonly Key[]
): Omit<Rules, Key> {
  const entries = Object.entries(rules).filter(([key]) => !(keys as readonly string[]).includes(key));
  return Object.fromEntries(entries) as Omit<Rules, Key>;
}

/** The checked options that have a rule here and are not undefined. */
export function pickOptions<Options extends object>(options: Options, rules: OptionRules<Options>): Options {
  const picked: Partial<Options> = {};
  for (const key of Object.keys(rules) as (keyof Options)[]) {
    if (options[key] !== undefined) picked[key] = options[key];
  }
  return picked as Options;
}
