import { describe, LatentkitError } from "../errors.js";

/** What an option has to be, in words, and whether a value is that. */
export type Rule = readonly [expected: string, holds: (value: unknown) => boolean];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const has = (value: unknown, ...methods: readonly string[]): boolean =>
  isObject(value) && methods.every((method) => typeof value[method] === "function");
const isText = (value: unknown): boolean => typeof value === "string" && value !== "" && !value.includes("\0");
/** A Map, a Date or a promise has no keys of its own: its values would be passed over. */
const isKeyed = (value: unknown): value is Record<string, unknown> => {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.keys(value).length > 0;
};

const FLAG: Rule = ["true or false", (value) => typeof value === "boolean"];
const FOLDER: Rule = ["the path of a folder", isText];
const FUNCTION: Rule = ["a function", (value) => typeof value === "function"];
const VALUES: Rule = ["an object of values by key", isKeyed];
const NAMES: Rule = [
  "an object of names by name",
  (value) => isKeyed(value) && Object.values(value).every((name) => typeof name === "string"),
];
const IDS: Rule = [
  "a list of node ids",
  (value) => Array.isArray(value) && value.every((id) => typeof id === "string"),
];
const SIGNAL: Rule = [
  "an AbortSignal",
  (value) => has(value, "addEventListener", "removeEventListener") && "aborted" in (value as object),
];
export const REGISTRY: Rule = ["a registry, as createRegistry makes one", (value) => has(value, "has", "get", "keys")];
export const HOST: Rule = [
  "a host, as createPreviewHost makes one",
  (value) => has(value, "checkpoints", "loadCheckpoint"),
];

/** Options of `render`; ranges and what hangs on the graph are checked where they are used. */
export const RENDER_RULES: Readonly<Record<string, Rule>> = {
  set: VALUES,
  targets: IDS,
  registry: REGISTRY,
  host: HOST,
  setup: [
    "the URL of a module (pathToFileURL makes one)",
    (value) => isObject(value) && typeof value.href === "string",
  ],
  outputDir: FOLDER,
  inputDir: FOLDER,
  classAliases: NAMES,
  extraPnginfo: VALUES,
  config: VALUES,
  partial: FLAG,
  allowNetwork: FLAG,
  cache: ["a cache, as createCache makes one", (value) => has(value, "begin", "has")],
  diskCache: ["a disk cache, as createDiskCache makes one", isObject],
  clock: FUNCTION,
  fetch: FUNCTION,
  signal: SIGNAL,
  onEvent: FUNCTION,
};

/** The same of `batch`. */
export const BATCH_RULES: Readonly<Record<string, Rule>> = {
  ...RENDER_RULES,
  journal: ["the path of a file", isText],
  resume: FLAG,
  failFast: FLAG,
  name: ["a text", (value) => typeof value === "string"],
  total: ["a whole number", (value) => Number.isSafeInteger(value) && (value as number) >= 0],
  drain: SIGNAL,
};

/** Fails with usage.invalid, one sentence, for the first option that is not what it has to be; undefined is absent. */
export function checkOptions(options: unknown, rules: Readonly<Record<string, Rule>>): void {
  if (!isObject(options)) throw wrong("options", "an object", options);
  for (const [name, [expected, holds]] of Object.entries(rules)) {
    const value = options[name];
    if (value !== undefined && !holds(value)) throw wrong(name, expected, value);
  }
}

const wrong = (name: string, expected: string, received: unknown): LatentkitError =>
  new LatentkitError("usage.invalid", `${name}: expected ${expected}, received ${describe(received)}.`);
