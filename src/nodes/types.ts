import type { LatentkitError } from "../base/errors.js";
import type { Host } from "../host/host.js";
import type { FilesByName } from "../io/files/input-text.js";
import type { OutputHandling } from "../io/files/output-files.js";
import type { ChoiceContext, ComfyInput, InputSpec } from "./inputs.js";
import type { OutputSource, OutputSpec } from "./outputs.js";

/** Kind of a hidden input. */
export type HiddenType = "PROMPT" | "EXTRA_PNGINFO" | "UNIQUE_ID";

/** Everything that a node may use from outside; nodes use nothing global. */
export interface NodeContext {
  readonly nodeId: string;
  /** Aborted with the run, and at its end. */
  readonly signal: AbortSignal;
  /**
   * Reports progress as value of max. `preview` is any image of the state, or a function that returns one: it is called
   * if the run has `previews`, at most every 100 ms. A promise of an image is reported when it settles, with
   * the value reached by then.
   */
  progress(value: number, max: number, preview?: unknown): void;
  /** Memory of this node instance, kept in the cache under the node's id. */
  readonly state: Record<string, unknown>;
  readonly host: Host;
  readonly folders: Folders;
  /**
   * Reads an input file by the name that the graph has for it: one of the job's `files`, a data: text, an https: address or
   * a file of the input folder. `subject` names it in messages, as `input "image"`.
   */
  readInput(name: string, subject?: string): Promise<Buffer>;
  readonly clock: () => Date;
  readonly fetch: typeof fetch;
  readonly config: NodeConfig;
  readonly log: (message: string) => void;
  /** Names and receipts of saved images; if absent, counters and no receipts. */
  readonly output?: OutputHandling;
  /**
   * The calling thread only renders: it reads files, decodes and encodes PNG pictures itself. If every processor has such
   * a thread, handing work to another one only costs time.
   */
  readonly isBlocking?: boolean;
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

/** Algorithm of a noise stream: PyTorch's CPU generator, or its CUDA generator. */
export type NoiseStream = "cpu" | "gpu";

/**
 * Result of a node's own validation. True or undefined: valid. A text is the fault of the inputs that were read; a record
 * has the fault of each input: a text, or an error without the name of the input.
 */
export type ValidationResult = boolean | string | Readonly<Record<string, string | LatentkitError>> | undefined;

/** Context of a node's own validation: types of linked inputs, input files. */
export interface ValidateContext {
  readonly inputTypes: Readonly<Record<string, string>>;
  readonly inputDir?: string;
  /** Input files at hand, which precede those of the folder. */
  readonly files?: FilesByName;
  /** Number of suggestions that may still be searched for in this graph; each search decrements it. */
  readonly hints?: { left: number };
}

/** Full result of a node that returns more than its outputs. */
export interface NodeResult {
  /** Values by output name or in output order. */
  readonly result?: Readonly<Record<string, unknown>> | readonly unknown[];
  readonly ui?: Readonly<Record<string, unknown[]>>;
  /** A graph that replaces this node; `result` then holds links into it. */
  readonly expand?: Readonly<Record<string, unknown>>;
}

type Values<I> = { [K in keyof I]: I[K] extends InputSpec<infer Value> ? Value : unknown };
type Hidden<H> = { [K in keyof H]?: H[K] extends "UNIQUE_ID" ? string : unknown };
/** With inputIsList every input arrives as an array. */
type RunInputs<I, H, L> = (L extends true ? { [K in keyof I]: unknown[] } : Values<I>) & Hidden<H>;
type Awaitable<T> = T | Promise<T>;

/** Source of a node, written by its author. Outputs are named in order; `run` returns them by name. */
export interface NodeSource<
  I extends Record<string, InputSpec | ComfyInput>,
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
  /** Has a UI result without being an output node: a root if the graph has no output node. */
  readonly hasUi?: boolean;
  readonly notIdempotent?: boolean;
  /** Talks to other machines: runs in every run, even if a disk cache holds its result. */
  readonly reachesNetwork?: boolean;
  /** Uses a key of the configuration or the environment; a run that may not reach the network refuses it too. */
  readonly usesKey?: boolean;
  /**
   * Declares that outputs depend only on the declared inputs, `isChanged` and the host's models, and that running the
   * node has no side effects, so that a disk cache may store them. Change the text whenever the code changes outputs.
   * Nodes of the package do not need it.
   */
  readonly cacheVersion?: string;
  /** Returns at once, even if required inputs are absent. Inputs that it reads are exempt from range and list checks. */
  validate?(inputs: Record<string, unknown>, context: ValidateContext): ValidationResult;
  /** Returns a value for the cache key: another value means changed. Links are not resolved. */
  isChanged?(inputs: Record<string, unknown>, context: ChoiceContext): Awaitable<unknown>;
  /** Returns the names of the lazy inputs that are still needed. */
  checkLazy?(inputs: Record<string, unknown>): Awaitable<readonly string[]>;
  /** Returns the noise stream that the node's seed starts, for receipts. Links are not resolved. */
  noiseStream?(inputs: Record<string, unknown>): NoiseStream | undefined;
  /**
   * Returns a value for each output, by name or in order; null is a value, undefined is not. The node fails with
   * node.failed if one is missing, or a key or value beyond them is returned.
   */
  run(
    inputs: RunInputs<I, H, L>,
    context: NodeContext,
  ): Awaitable<Readonly<Record<string, unknown>> | readonly unknown[] | NodeResult | undefined>;
}

type Hooks = Pick<NodeSource<never, never, never>, "validate" | "isChanged" | "checkLazy" | "noiseStream">;

/** A node in the form that registry, validator and executor use. */
export interface NodeDefinition extends Hooks {
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
  run(
    inputs: Record<string, unknown>,
    context: NodeContext,
  ): Awaitable<Readonly<Record<string, unknown>> | readonly unknown[] | NodeResult | undefined>;
}

/** A node with static types of key, inputs and outputs, which `invokeNode` and a registry use. */
export interface TypedNode<Key extends string, Inputs extends object, Result extends readonly unknown[]>
  extends NodeDefinition {
  readonly key: Key;
  /** Carries static types only; never set. */
  readonly types?: { readonly inputs: Inputs; readonly result: Result };
}

// Types do not keep the order of an object's keys, so a node with several outputs declares them as a list. Required
// inputs are checked at run time.
/** Value that a caller of `invokeNode` may pass: numbers in any form, and anything with a text form for a text. */
type Given<Value> = unknown extends Value ? unknown : GivenOne<Value>;
type GivenOne<Value> = Value extends number | bigint
  ? number extends Value
    ? number | bigint | string
    : bigint extends Value
      ? number | bigint | string
      : Value
  : Value extends string
    ? string extends Value
      ? string | number | bigint | boolean
      : Value
    : Value;
/** Values for the inputs of a node, by their names; a node that takes lists checks each entry itself. */
export type GivenInputs<I, L> = {
  readonly [Name in keyof I]?: L extends true
    ? unknown
    : I[Name] extends InputSpec<infer Value>
      ? Given<Value>
      : unknown;
};

interface NodeTypes {
  readonly inputs: object;
  readonly result: readonly unknown[];
}
interface AnyTypes extends NodeTypes {
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly result: unknown[];
}
/** Static types of a node; a definition without them takes and returns anything. */
export type TypesOf<Node> = Node extends { readonly types?: infer Types }
  ? NonNullable<Types> extends infer Own extends NodeTypes
    ? Own
    : AnyTypes
  : AnyTypes;
type ByKey<Nodes, Key> = string extends Key ? never : Extract<Nodes, { readonly key: Key }>;
/** The node that a key names; any node if the key is unknown. */
export type NodeByKey<Nodes, Key> = [ByKey<Nodes, Key>] extends [never] ? NodeDefinition : ByKey<Nodes, Key>;
/** Inputs of a node by name, with any value: they may come from a graph, a form or a message. */
export type NamedInputs<Node> = { readonly [Name in keyof TypesOf<Node>["inputs"]]?: unknown };
