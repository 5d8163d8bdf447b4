import { resolve } from "node:path";
import { GRACE_MS, orGivenUp, Span } from "../base/abort.js";
import { atNode, describe, LatentkitError, messageOf } from "../base/errors.js";
import {
  CHECKED_LATER,
  checkOptions,
  FILES,
  FOLDER,
  FUNCTION,
  HOST,
  isObject,
  OBJECT,
  type OptionRules,
  REGISTRY,
  SIGNAL,
  VALUES,
} from "../base/options.js";
import { suggest } from "../base/suggest.js";
import type { Host } from "../host/host.js";
import { createPreviewHost } from "../host/preview/index.js";
import { InputFiles } from "../io/files/input-files.js";
import type { FilesByName } from "../io/files/input-text.js";
import { chooseDevice, type DeviceChoice, withDevice } from "../tensor/device/device.js";
import { type NodeConfig, type NodeContext, type NodeDefinition, toResult } from "./define.js";
import { registry as allNodes, type BuiltInNode } from "./index.js";
import type { ChoiceContext } from "./inputs.js";
import { readHidden, readInputs } from "./invoke-inputs.js";
import type { Registry } from "./registry.js";
import type { NamedInputs, NodeByKey, TypesOf } from "./types.js";

/** Options of `invokeNode`: what a graph would give the node. */
export interface InvokeOptions {
  /** Hidden inputs. Prompt and extra_pnginfo may be JSON text; its numbers keep every digit. */
  hidden?: { prompt?: unknown; extra_pnginfo?: unknown; unique_id?: string | number | null };
  /** Source of models; the preview host if absent. */
  host?: Host;
  /** Folder that files are written to; ./out if absent. */
  outputDir?: string;
  /** Folder that files are read from; ./input if absent. */
  inputDir?: string;
  /** Input files at hand, by their names; they precede those of `inputDir`. */
  files?: FilesByName;
  /** The nodes that a key names; those of the package if absent. */
  registry?: Registry;
  /** Aborts the call. */
  signal?: AbortSignal;
  /** Clock of the node; the system's if absent. */
  clock?: () => Date;
  /** Requests of a node that reaches the network; the global `fetch` if absent. */
  fetch?: typeof fetch;
  /** Address and keys of the service that `ext remoteImageApi` calls; the environment's if absent. */
  config?: NodeConfig;
  /** Device that computes: "auto", "cpu" or "cuda:N", see docs/cuda.md; LATENTKIT_DEVICE, else "auto", if absent. */
  device?: DeviceChoice;
  /** Receives warnings: an input that the node does not have, a value that it does not compute with. */
  log?: (message: string) => void;
}

const INVOKE_RULES: OptionRules<InvokeOptions> = {
  hidden: OBJECT,
  host: HOST,
  outputDir: FOLDER,
  inputDir: FOLDER,
  files: FILES,
  registry: REGISTRY,
  signal: SIGNAL,
  clock: FUNCTION,
  fetch: FUNCTION,
  config: VALUES,
  device: CHECKED_LATER,
  log: FUNCTION,
};

const HIDDEN_RULES: OptionRules<NonNullable<InvokeOptions["hidden"]>> = {
  prompt: CHECKED_LATER,
  extra_pnginfo: CHECKED_LATER,
  unique_id: CHECKED_LATER,
};

/** Results of one node, in the order of its outputs. */
export interface Invoked<Result extends readonly unknown[] = unknown[]> {
  result: Result;
  ui?: Record<string, unknown[]>;
}

/**
 * Runs one node: one of the package or of `registry` by its key, or a definition of your own. Inputs and outputs carry the
 * node's names and order; a node that takes lists gets arrays, a list output is an array; an absent input is its default.
 * Every input is checked before the node runs. Fails with a LatentkitError that names the node, and with the reason of
 * `signal`; a node that does not listen to it is abandoned after 2 s.
 */
export function invokeNode<const Key extends string, Nodes extends NodeDefinition = BuiltInNode>(
  key: Key,
  inputs: NamedInputs<NodeByKey<Nodes, Key>>,
  options?: InvokeOptions & { registry?: Registry<Nodes> },
): Promise<Invoked<TypesOf<NodeByKey<Nodes, Key>>["result"]>>;
export function invokeNode<Node extends NodeDefinition>(
  node: Node,
  inputs: TypesOf<Node>["inputs"],
  options?: InvokeOptions,
): Promise<Invoked<TypesOf<Node>["result"]>>;
export async function invokeNode(
  node: string | NodeDefinition,
  inputs: object,
  options: InvokeOptions = {},
): Promise<Invoked> {
  checkOptions("invokeNode", options, INVOKE_RULES);
  if (options.hidden !== undefined) checkOptions("invokeNode, hidden", options.hidden, HIDDEN_RULES);
  const definition = isDefinition(node) ? node : findNode(node, options.registry ?? allNodes);
  const { key } = definition;
  if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs)) {
    const message = `${key}: expected an object of inputs, received ${describe(inputs)}.`;
    throw new LatentkitError("usage.invalid", message, { node: key });
  }
  const span = new Span(options.signal);
  const context = new InvokeContext(key, options, span);
  const device = chooseDevice(options.device);
  const choices = new InvokeChoices(context, options.files);
  const received = readInputs(definition, inputs as Readonly<Record<string, unknown>>, choices, context.log);
  options.signal?.throwIfAborted();
  let returned: ReturnType<typeof toResult>;
  try {
    const all = { ...received, ...readHidden(definition, options.hidden ?? {}) };
    const running = Promise.resolve(withDevice(device, () => definition.run(all, context)));
    returned = toResult(definition, await orGivenUp(running, options.signal, GRACE_MS));
  } catch (error) {
    options.signal?.throwIfAborted();
    throw withNode(error, key);
  } finally {
    span.end();
  }
  options.signal?.throwIfAborted();
  const { result, ui, expand } = returned;
  if (expand !== undefined) {
    const message = `${key}: the node returned a graph; run it with executeGraph.`;
    throw new LatentkitError("node.failed", message, { node: key });
  }
  return ui === undefined ? { result } : { result, ui };
}

/** Whether defineNode returned it: a node's source has its outputs in other forms. */
const isDefinition = (node: unknown): node is NodeDefinition =>
  isObject(node) && typeof node.run === "function" && Array.isArray(node.outputs) && isObject(node.hidden);

function findNode(key: unknown, registry: Registry): NodeDefinition {
  const definition = typeof key === "string" ? registry.get(key) : undefined;
  if (definition !== undefined) return definition;
  const { suggestion, hint } = suggest(key, registry.keys());
  const expected = typeof key === "string" ? "a registered key" : "a registered key or a node that defineNode returned";
  const message = `Node: expected ${expected}, received ${describe(key)}.${hint}`;
  throw new LatentkitError("graph.unknown-class", message, { received: describe(key), suggestion });
}

/** The context of a node outside a graph. A class: an object literal with getters takes microseconds to make. */
class InvokeContext implements NodeContext {
  readonly nodeId: string;
  readonly state = {};
  readonly clock: NodeContext["clock"];
  readonly fetch: NodeContext["fetch"];
  readonly config: NodeConfig;
  readonly log: NodeContext["log"];
  readonly progress = ignore;
  #currentHost: Host | undefined;
  #places: NodeContext["folders"] | undefined;
  #inputs: InputFiles | undefined;
  readonly #options: InvokeOptions;
  readonly #span: Span;

  constructor(key: string, options: InvokeOptions, span: Span) {
    this.#options = options;
    this.#span = span;
    this.nodeId = String(options.hidden?.unique_id ?? key);
    this.clock = options.clock ?? now;
    this.fetch = options.fetch ?? globalThis.fetch;
    this.config = options.config ?? {};
    this.log = (message) => {
      if (!span.isOver) options.log?.(message);
    };
    this.#currentHost = options.host;
  }

  // the rest is made when a node reads it

  get signal(): AbortSignal {
    return this.#span.signal;
  }

  get host(): Host {
    this.#currentHost ??= createPreviewHost();
    return this.#currentHost;
  }

  get folders(): NodeContext["folders"] {
    const { outputDir = "out", inputDir = "input" } = this.#options;
    this.#places ??= { output: resolve(outputDir), input: resolve(inputDir) };
    return this.#places;
  }

  readonly readInput: NodeContext["readInput"] = (name, subject) => {
    this.#inputs ??= new InputFiles({ folder: this.folders.input, files: this.#options.files });
    return this.#inputs.read(name, subject, this.signal);
  };
}

const ignore = (): void => {};
const now = (): Date => new Date();

/** The context in which the choices of an input are listed. */
class InvokeChoices implements ChoiceContext {
  readonly #context: NodeContext;

  constructor(
    context: NodeContext,
    readonly files: InvokeOptions["files"],
  ) {
    this.#context = context;
  }

  get inputDir(): string {
    return this.#context.folders.input;
  }

  get host(): Host {
    return this.#context.host;
  }
}

/** Adds the node's name to an error; a foreign error becomes a LatentkitError. */
function withNode(error: unknown, node: string): LatentkitError {
  if (!(error instanceof LatentkitError)) {
    return new LatentkitError("node.failed", `${node}: ${messageOf(error)}`, { node }, { cause: error });
  }
  if (error.details.node !== undefined) return error;
  return new LatentkitError(error.code, atNode({ node }, error.message), { ...error.details, node }, { cause: error });
}
