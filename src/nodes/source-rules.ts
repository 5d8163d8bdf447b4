import { describe, LatentkitError } from "../errors.js";
import { checkOptions, FLAG, FUNCTION, isKeyed, type OptionRules, type Rule, TEXT, VALUES } from "../options.js";
import type { HiddenType, NodeSource } from "./define.js";
import type { ComfyInput, InputSpec } from "./inputs.js";

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

/** Throws usage.invalid where a field of a node's source is missing, wrong or unknown, or an input is none. */
export function checkSource(source: unknown): asserts source is Source {
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
