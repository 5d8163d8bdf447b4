import { describe, LatentkitError } from "../../base/errors.js";
import { CHECKED_LATER, checkedLater, checkOptions, FUNCTION, type OptionRules } from "../../base/options.js";
import { suggest } from "../../base/suggest.js";
import type { Warn } from "../types.js";

/** Normalisations of the weights of a prompt before they are applied. */
export const TOKEN_NORMALIZATIONS = ["none", "mean", "length", "length+mean"] as const;
/** Interpretations of a weight: ways to apply it to the encoding of its token. */
export const WEIGHT_INTERPRETATIONS = ["comfy", "A1111", "comfy++", "compel", "down_weight"] as const;

export type TokenNormalization = (typeof TOKEN_NORMALIZATIONS)[number];
export type WeightInterpretation = (typeof WEIGHT_INTERPRETATIONS)[number];

/** Options of `encodePrompt` and `tokenizePrompt`: how the weights of a prompt act. */
export interface PromptOptions {
  /** One of TOKEN_NORMALIZATIONS; any other text acts as "none", as in the reference. Default "none". */
  tokenNormalization?: string;
  /** How weights act: "comfy", "A1111", "comfy++", "compel" or "down_weight". Default "comfy". */
  weightInterpretation?: string;
  /** The weight that "down_weight" scales the largest one to, if that is above it. Default 1. */
  wMax?: number;
  /** Whether weights also change the pooled output if a clip has several encoders. Default true. */
  applyToPooled?: boolean;
  /** Reads weights and schedules as the A1111 web UI does. Default false. */
  a1111PromptStyle?: boolean;
  /** Sampling steps that schedules of the A1111 style refer to, 1 to 10000. Default 1. */
  steps?: number;
  /** Receives why an embedding is left out. */
  warn?: Warn;
}

export interface CheckedOptions extends Required<Omit<PromptOptions, "warn">> {
  warn: Warn | undefined;
  tokenNormalization: TokenNormalization;
  weightInterpretation: WeightInterpretation;
}

const MAX_STEPS = 10000;

const PROMPT_RULES: OptionRules<PromptOptions> = {
  tokenNormalization: CHECKED_LATER,
  weightInterpretation: checkedLater("a weight interpretation"),
  wMax: CHECKED_LATER,
  applyToPooled: CHECKED_LATER,
  a1111PromptStyle: CHECKED_LATER,
  steps: CHECKED_LATER,
  warn: FUNCTION,
};

/** Fills in defaults. Throws if an option is unknown, names no weight interpretation or is a number out of range. */
export function readPromptOptions(options: PromptOptions = {}): CheckedOptions {
  checkOptions("encodePrompt", options, PROMPT_RULES);
  const {
    weightInterpretation = "comfy",
    wMax = 1,
    steps = 1,
    applyToPooled = true,
    a1111PromptStyle = false,
  } = options;
  if (typeof wMax !== "number" || !Number.isFinite(wMax)) {
    throw new LatentkitError("value.invalid", `wMax: expected a finite number, received ${describe(wMax)}.`);
  }
  if (!Number.isInteger(steps) || steps < 1 || steps > MAX_STEPS) {
    const message = `steps: expected a whole number from 1 to ${MAX_STEPS}, received ${describe(steps)}.`;
    throw new LatentkitError("value.out-of-range", message);
  }
  return {
    warn: options.warn,
    tokenNormalization: checkTokenNormalization(options.tokenNormalization),
    weightInterpretation: oneOf(WEIGHT_INTERPRETATIONS, weightInterpretation, "weight interpretation"),
    wMax,
    applyToPooled: flag(applyToPooled, "applyToPooled"),
    a1111PromptStyle: flag(a1111PromptStyle, "a1111PromptStyle"),
    steps,
  };
}

/** Returns "none" for an unknown name, as in the reference. Throws for anything but a text. */
export function checkTokenNormalization(name: string = "none"): TokenNormalization {
  if (typeof name !== "string") return oneOf(TOKEN_NORMALIZATIONS, name, "token normalization");
  return TOKEN_NORMALIZATIONS.find((normalization) => normalization === name) ?? "none";
}

export function requireText(text: unknown): asserts text is string {
  if (typeof text !== "string") {
    throw new LatentkitError("value.invalid", `Prompt: expected a text, received ${describe(text)}.`);
  }
}

function oneOf<T extends string>(names: readonly T[], name: unknown, kind: string): T {
  if (names.includes(name as T)) return name as T;
  const { suggestion, hint } = suggest(name, names);
  const [expected, received] = [`${kind} ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`, describe(name)];
  const message = `Prompt: expected ${expected}, received ${received}.${hint}`;
  throw new LatentkitError("value.invalid", message, { expected, received, suggestion });
}

function flag(value: unknown, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw new LatentkitError("value.invalid", `${name}: expected true or false, received ${describe(value)}.`);
}
