import type { LatentkitError } from "../errors.js";
import type { Host } from "../host/types.js";
import type { OutputHandling } from "../io/output-files.js";
import { type ChoicePlace, type HostInput, type InputSpec, toInputSpec } from "./inputs.js";
import { type OutputSource, type OutputSpec, outputSpecs, type ResultOf } from "./outputs.js";
import { checkSource } from "./source-rules.js";

/** What a hidden input asks for. */
export type HiddenType = "PROMPT" | "EXTRA_PNGINFO" | "UNIQUE_ID";

/** Everything a node may use from outside; nothing global. */
export interface NodeContext {
  readonly nodeId: string;
  /** Aborted with the run, and when it is over. */
  readonly signal: AbortSignal;
  /** Reports value of max; preview is any picture of the state. */
  progress(value: number, max: number, preview?: unknown): void;
  /** Lives with the node's id in the cache: an instance's own memory. */
  readonly state: Record<string, unknown>;
  readonly host: Host;
  readonly folders: Folders;
  readonly clock: () => Date;
  readonly fetch: typeof fetch;
  readonly config: NodeConfig;
  readonly log: (message: string) => void;
  /** Names and receipts of saved images; counters and none where absent. */
  readonly output?: OutputHandling;
}

/** Absolute paths. */
export interface Folders {
  readonly output: string;
  readonly input: string;
}

/** The part of the configuration that nodes read. */
export interface NodeConfig {
  readonly remote_image_api?: {
    readonly base_url?: string;
    readonly keys?: readonly { readonly name: string; readonly key: string }[];
  };
}

/** Algorithm of a stream of noise: PyTorch's CPU generator, or its CUDA generator. */
export type NoiseStream = "cpu" | "gpu";

/**
 * True or nothing: valid. A text says what is wrong with the inputs it read, a record what is wrong with which: a text, or
 * an error whose message names the input already.
 */
export type ValidationAnswer = boolean | string | Readonly<Record<string, string | LatentkitError>> | undefined;

/** A node's own validation also hears the types of linked inputs, and where input files are. */
export interface ValidateContext {
  readonly inputTypes: Readonly<Record<string, string>>;
  readonly inputDir?: string;
  /** How many more suggestions may be looked for in this graph; whoever looks for one counts it. */
  readonly hints?: { left: number };
}

/** The whole answer of a node, where outputs alone are not enough. */
export interface NodeAnswer {
  /** Values by output name or in output order. */
  readonly result?: Readonly<Record<string, unknown>> | readonly unknown[];
  readonly ui?: Readonly<Record<string, unknown[]>>;
  /** A graph to run in this node's place; `result` then holds links into it. */
  readonly expand?: Readonly<Record<string, unknown>>;
}

type Values<I> = { [K in keyof I]: I[K] extends InputSpec<infer Value> ? Value : unknown };
type Hidden<H> = { [K in keyof H]?: H[K] extends "UNIQUE_ID" ? string : unknown };
/** With inputIsList every input arrives as an array. */
type Received<I, H, L> = (L extends true ? { [K in keyof I]: unknown[] } : Values<I>) & Hidden<H>;
type Awaitable<T> = T | Promise<T>;

/** What an author writes. Outputs are named in order; `run` answers by name. */
export interface NodeSource<
  I extends Record<string, InputSpec | HostInput>,
  H extends Record<string, HiddenType>,
  L extends boolean,
  K extends string = string,
  O extends OutputSource = OutputSource,
> {
  readonly key: K;
  readonly displayName?: string;
  readonly category?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly inputs: I;
  readonly outputs: O;
  readonly hidden?: H;
  readonly inputIsList?: L;
  readonly outputIsList?: readonly boolean[];
  readonly outputNode?: boolean;
  readonly writesFiles?: boolean;
  /** Has a UI result without being an output node: a root where a graph has none. */
  readonly hasUi?: boolean;
  readonly notIdempotent?: boolean;
  /** Talks to other machines: each run does it anew, whatever a disk cache holds. */
  readonly reachesNetwork?: boolean;
  /** Uses a key of the configuration or the environment; a run that may not reach the network refuses it too. */
  readonly usesKey?: boolean;
  /**
   * The author's word that outputs follow from the declared inputs, `isChanged` and the host's models alone, and that
   * running the node does nothing else, so that a disk cache may keep them; another text whenever its code changes
   * outputs. Nodes of the package need none.
   */
  readonly cacheVersion?: string;
  /** Answers at once, also where required inputs are absent. The inputs it reads are exempt from range and list checks. */
  validate?(inputs: Record<string, unknown>, context: ValidateContext): ValidationAnswer;
  /** Joins the cache key: another value means changed. Links are not resolved. `place` holds the input folder. */
  isChanged?(inputs: Record<string, unknown>, place: ChoicePlace): Awaitable<unknown>;
  /** Names of the lazy inputs still needed, given what is there. */
  checkLazy?(inputs: Record<string, unknown>): Awaitable<readonly string[]>;
  /** The stream of noise that the node's seed starts, for receipts. Links are not resolved. */
  noiseStream?(inputs: Record<string, unknown>): NoiseStream | undefined;
  run(
    inputs: Received<I, H, L>,
    context: NodeContext,
  ): Awaitable<Readonly<Record<string, unknown>> | readonly unknown[] | NodeAnswer | undefined>;
}

/** A node as the registry, the validator and the executor see it. */
export interface NodeDefinition {
  readonly key: string;
  readonly displayName: string;
  readonly category: string;
  readonly description: string;
  readonly deprecated: boolean;
  readonly inputs: Readonly<Record<string, InputSpec>>;
  readonly outputs: readonly OutputSpec[];
  readonly hidden: Readonly<Record<string, HiddenType>>;
  readonly inputIsList: boolean;
  readonly outputNode: boolean;
  readonly writesFiles: boolean;
  readonly hasUi: boolean;
  readonly notIdempotent: boolean;
  readonly reachesNetwork: boolean;
  readonly usesKey: boolean;
  readonly cacheVersion?: string;
  validate?(inputs: Record<string, unknown>, context: ValidateContext): ValidationAnswer;
  isChanged?(inputs: Record<string, unknown>, place: ChoicePlace): Awaitable<unknown>;
  checkLazy?(inputs: Record<string, unknown>): Awaitable<readonly string[]>;
  noiseStream?(inputs: Record<string, unknown>): NoiseStream | undefined;
  run(
    inputs: Record<string, unknown>,
    context: NodeContext,
  ): Awaitable<Readonly<Record<string, unknown>> | readonly unknown[] | NodeAnswer | undefined>;
}

/** A node whose key, inputs and outputs static types know; `invokeNode` reads them of the package's own nodes. */
export interface TypedNode<Key extends string, Input extends string, Result extends readonly unknown[]>
  extends NodeDefinition {
  readonly key: Key;
  /** Carries static types only; never set. */
  readonly types?: { readonly input: Input; readonly result: Result };
}

/**
 * Declares a node. Throws usage.invalid where a field is missing, wrong or unknown: functions that a node shares stand
 * beside its source, not in it.
 * Deprecated `ext …` nodes get their category and display name from their key.
 */
export function defineNode<
  const I extends Record<string, InputSpec | HostInput>,
  const H extends Record<string, HiddenType> = Record<never, never>,
  const L extends boolean = false,
  const K extends string = string,
  const O extends OutputSource = OutputSource,
>(source: NodeSource<I, H, L, K, O>): TypedNode<K, keyof I & string, ResultOf<O>> {
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

/** Whether a run that may not reach the network refuses the node. */
export const needsNetwork = ({ reachesNetwork, usesKey }: NodeDefinition): boolean => reachesNetwork || usesKey;

/** "ext latentNoisy" is LatentNoisy. */
function titleOf(key: string): string {
  const name = key.replace(/^\S+ /, "");
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** An output value that stops its consumers: silently, or with a message as an error event at each direct one. */
export class Blocker {
  readonly message: string | undefined;
  constructor(message?: string) {
    this.message = message;
  }
}

/** An output value that stops the nodes that read it: silently, or with a message as an event at each direct reader. */
export const block = (message?: string): Blocker => new Blocker(message);

/** A node's answer as values in output order, whatever form it took. A blocker alone blocks every output. */
export function toResult(
  definition: NodeDefinition,
  answer: unknown,
): { result: unknown[]; ui?: Record<string, unknown[]>; expand?: Record<string, unknown> } {
  const { outputs } = definition;
  if (answer === undefined || answer === null) return { result: outputs.map(() => undefined) };
  if (answer instanceof Blocker) return { result: outputs.map(() => answer) };
  if (Array.isArray(answer)) return { result: answer };
  const object = answer as Record<string, unknown>;
  const isEnvelope =
    ["result", "ui", "expand"].some((key) => Object.hasOwn(object, key)) &&
    !outputs.some(({ name }) => name === "result" || name === "ui" || name === "expand");
  if (!isEnvelope) return { result: outputs.map(({ name }) => object[name]) };
  const { result, ui, expand } = object as NodeAnswer;
  const values =
    result instanceof Blocker
      ? outputs.map(() => result)
      : Array.isArray(result)
        ? result
        : outputs.map(({ name }) => (result as Record<string, unknown> | undefined)?.[name]);
  return { result: values, ui: ui as Record<string, unknown[]> | undefined, expand };
}
