import { describe, LatentkitError } from "../base/errors.js";
import type { Host, HostAbility, HostFiles } from "../host/host.js";
import type { Guider } from "../host/sampling/guiders.js";
import type { InitialNoise } from "../host/sampling/noise.js";
import type { SamplerChoice } from "../host/sampling/solver.js";
import type { Clip, Conditioning, Latent, Model, Pipe, Vae } from "../host/types.js";
import type { FilesByName } from "../io/files/input-text.js";
import type { Tensor } from "../tensor/tensor.js";

/** A value of a choice: ComfyUI's combos mix strings and numbers. */
export type Choice = string | number | boolean;
/** A fixed list, or one that depends on where the graph runs (checkpoints, files); undefined: any text may be right. */
export type Choices = readonly Choice[] | ((context: ChoiceContext) => readonly Choice[] | undefined);
/** Everything that choices and validation may depend on besides the graph. */
export interface ChoiceContext {
  readonly host?: Pick<Host, "checkpoints" | "files" | "fileOf"> &
    Partial<Pick<Host, "name" | "promptWarnings" | "refusal" | "abilities" | "familyOf" | "misfit">>;
  readonly inputDir?: string;
  /** Input files at hand, which precede those of the folder. */
  readonly files?: FilesByName;
  /** Number of suggestions that validation may still search for. */
  readonly hints?: { left: number };
}

/** A kind of files that a host loads models from. */
export type FileKind = keyof HostFiles | "checkpoints";

/** A host's file as a graph would name it. */
export interface NamedFile {
  readonly kind: FileKind;
  readonly name: string;
}

/** One input of a node: the facts behind its static type, its validation and its description. */
export interface InputSpec<Value = unknown> {
  /** ComfyUI's type name: INT, FLOAT, STRING, BOOLEAN, COMBO, IMAGE …, a union "IMAGE,MASK", or "*". */
  readonly type: string;
  readonly optional: boolean;
  /** Computed only when `checkLazy` asks for it. */
  readonly lazy: boolean;
  /** STRING: lists and objects are refused, although ComfyUI turns them into text. */
  readonly strict?: boolean;
  /** "*": numbers arrive as the graph writes them, a NumberLiteral for 7.0, so that floats differ from integers. */
  readonly literal?: boolean;
  readonly choices?: Choices;
  /** COMBO: choices by the names that they had before. */
  readonly renamed?: ReadonlyMap<unknown, Choice>;
  /** COMBO: the kind of the host's files that the choices are; other names of a file stand for it. */
  readonly files?: FileKind;
  /**
   * COMBO: the host's files that a choice stands for, for a model of a family. Throws model.missing for one that the host
   * lacks.
   */
  readonly preset?: {
    readonly kinds: readonly FileKind[];
    filesOf(value: string, family: string, host: NonNullable<ChoiceContext["host"]>): readonly NamedFile[];
  };
  /** An ability of a host's models that the node needs, unless another input has a value. */
  readonly needs?: { readonly ability: HostAbility; readonly unless?: readonly [input: string, value: unknown] };
  /** INT: the value that the node computes with, if it rounds or clamps; a run warns if it differs. */
  readonly used?: (value: number) => number;
  /** ComfyUI's options of an input: default, min, max, step, multiline, tooltip and so on. */
  readonly options: InputOptions;
  /** Carries the static type only; never set. */
  readonly value?: Value;
}

export interface InputOptions {
  readonly default?: unknown;
  readonly min?: number | bigint;
  readonly max?: number | bigint;
  readonly step?: number;
  readonly multiline?: boolean;
  readonly tooltip?: string;
  readonly [key: string]: unknown;
}

interface Flags {
  readonly optional?: boolean;
  readonly lazy?: boolean;
  readonly strict?: boolean;
  readonly literal?: boolean;
  readonly tooltip?: string;
}

/** Type of the value that `run` receives: undefined if the input may be absent and has no default. */
type RunValue<Value, O> = O extends { default: unknown }
  ? Value
  : O extends { optional: true }
    ? Value | undefined
    : O extends { lazy: true }
      ? Value | undefined
      : Value;

/** Declares an input of any type by its name. */
export function socket<Value = unknown, const O extends Flags = Record<never, never>>(
  type: string,
  options?: O,
): InputSpec<RunValue<Value, O>> {
  const {
    optional = false,
    lazy = false,
    strict = false,
    literal = false,
    ...rest
  } = (options ?? {}) as Flags & InputOptions;
  return { type, optional, lazy, strict, literal, options: lazy ? { ...rest, lazy } : rest };
}

/** IMAGE: Tensor [B, H, W, C] in 0…1. */
export const image = <const O extends Flags>(options?: O) => socket<Tensor, O>("IMAGE", options);
/** MASK: Tensor [B, H, W], or [H, W]. */
export const mask = <const O extends Flags>(options?: O) => socket<Tensor, O>("MASK", options);
/** LATENT: `{ samples: Tensor [B, C, H, W], … }`. */
export const latent = <const O extends Flags>(options?: O) => socket<Latent, O>("LATENT", options);
/** PIPE_LINE: the bundle that `ext` nodes hand on. */
export const pipe = <const O extends Flags>(options?: O) => socket<Pipe, O>("PIPE_LINE", options);
/** MODEL: a host's model. */
export const model = <const O extends Flags>(options?: O) => socket<Model, O>("MODEL", options);
/** VAE: a host's vae. */
export const vae = <const O extends Flags>(options?: O) => socket<Vae, O>("VAE", options);
/** CLIP: a host's text encoders. */
export const clip = <const O extends Flags>(options?: O) => socket<Clip, O>("CLIP", options);
/** CONDITIONING: encoded prompts with their options. */
export const conditioning = <const O extends Flags>(options?: O) => socket<Conditioning, O>("CONDITIONING", options);
/** SAMPLER: a sampler's name and its options. */
export const sampler = <const O extends Flags>(options?: O) => socket<SamplerChoice, O>("SAMPLER", options);
/** SIGMAS: falling noise levels, Tensor [n]. */
export const sigmas = <const O extends Flags>(options?: O) => socket<Tensor, O>("SIGMAS", options);
/** NOISE: the noise that sampling starts from. */
export const noise = <const O extends Flags>(options?: O) => socket<InitialNoise, O>("NOISE", options);
/** GUIDER: a model with its conditionings. */
export const guider = <const O extends Flags>(options?: O) => socket<Guider, O>("GUIDER", options);
/** LIST: a JavaScript array; one value counts as a list of one. */
export const list = <Item = unknown, const O extends Flags = Record<never, never>>(options?: O) =>
  socket<Item[], O>("LIST", options);
/** Any type. */
export const any = <const O extends Flags>(options?: O) => socket<unknown, O>("*", options);

/** INT, delivered as a number. */
export const int = <const O extends Flags & { default?: number; min?: number; max?: number; step?: number }>(
  options?: O,
) => socket<number, O>("INT", options);

/** INT over the whole range of a seed, 0 … 2^64-1, delivered as a bigint. */
export const seed = <const O extends Flags & { default?: number; max?: bigint }>(options?: O) =>
  socket<bigint, O & { default: number }>("INT", {
    default: 0,
    min: 0n,
    max: 18446744073709551615n,
    ...(options as O),
  });

/** FLOAT, delivered as a number. */
export const float = <const O extends Flags & { default?: number; min?: number; max?: number; step?: number }>(
  options?: O,
) => socket<number, O>("FLOAT", options);

/** STRING; numbers and booleans are converted. Lists and objects become text in a graph, unless `strict`. */
export const text = <const O extends Flags & { default?: string; multiline?: boolean }>(options?: O) =>
  socket<string, O>("STRING", options);

/** BOOLEAN, delivered as true or false. */
export const boolean = <const O extends Flags & { default?: boolean }>(options?: O) =>
  socket<boolean, O>("BOOLEAN", options);

/** One of a list of values. */
export function choice<const C extends readonly Choice[], const O extends Flags & { default?: C[number] }>(
  choices: C,
  options?: O,
): InputSpec<RunValue<C[number], O>>;
export function choice<const O extends Flags & { default?: string }>(
  choices: (context: ChoiceContext) => readonly string[] | undefined,
  options?: O,
): InputSpec<RunValue<string, O>>;
export function choice(choices: Choices, options?: Flags & InputOptions): InputSpec<never> {
  if (!Array.isArray(choices) && typeof choices !== "function") {
    const received = describe(choices);
    throw new LatentkitError("usage.invalid", `choice: expected a list of values or a function, received ${received}.`);
  }
  return { ...socket<never>("COMBO", options), choices };
}

/** ComfyUI's own notation, `["INT", { min: 0 }]` or `[["a", "b"], {}]`; `optional: true` among the options. */
export type ComfyInput = readonly [string | readonly Choice[], (Flags & InputOptions)?];

/** Returns the spec of an input, which may be in ComfyUI's notation. */
export function toInputSpec(input: InputSpec | ComfyInput): InputSpec {
  if (!Array.isArray(input)) return input as InputSpec;
  const [type, options = {}] = input as ComfyInput;
  if (typeof type !== "string") return choice(type, options as Flags);
  const listed = type === "COMBO" ? options.options : undefined;
  return Array.isArray(listed) ? choice(listed as Choice[], options as Flags) : socket(type, options);
}
