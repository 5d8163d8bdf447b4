import type { Validation } from "../../graph/validate.js";
import type { NodeDescription } from "../../nodes/describe.js";
import type { FileKind } from "../../nodes/inputs.js";

/** A graph in API format that runs keep from their start, even if its file changes. */
export interface RunGraph {
  /** null: the default, or a graph without a name. */
  readonly name: string | null;
  /** JSON. */
  readonly text: string;
}

/** Facts of a prompt of ComfyUI's classic API, beside its graph. */
export interface PromptFacts {
  /** "" for a prompt of no client. */
  readonly clientId: string;
  /** Whether it goes before the prompts that wait. */
  readonly isFront: boolean;
  /** Ids of the nodes whose outputs are wanted; null: of all. */
  readonly targets: readonly string[] | null;
  /** Ids of the output nodes that the run computes. */
  readonly outputs: readonly string[];
  /** Texts of its pictures, beside the graph. */
  readonly extraPnginfo: Readonly<Record<string, unknown>>;
}

/** The run as its agent sees it. */
export interface AgentRun {
  readonly id: string;
  readonly sessionKey: string;
  /** Pending system events first, one line each, then the request's message. */
  readonly message: string;
  readonly name: string | null;
  /** The graph that the run was accepted with; absent if the agent has no graphs. */
  readonly graph?: RunGraph;
  /** Facts of a prompt of ComfyUI's classic API: client, wanted nodes and texts, as JSON. Absent for every other run. */
  readonly promptFacts?: string;
  /** Number of the run's start, from 2 if an attempt failed or a worker was lost: earlier starts' files are not read. */
  readonly attempt?: number;
  /** Trace context of the request, as its header `traceparent` had it (W3C Trace Context). */
  readonly traceparent?: string;
}

/** Context of a run for its agent: what it may emit, read and store while it runs. */
export interface AgentContext {
  /** Aborts on cancel, time-out and shutdown. An agent that ignores it loses its slot all the same. */
  readonly signal: AbortSignal;
  /**
   * Adds an event to the run's stream. `data` becomes JSON: cycles and BigInt are written as text. Ignored after the
   * run's end. Throws TypeError for a reserved name (replay_meta, done, error, aborted) or one that is not 1 to 64 of
   * A-Z a-z 0-9 _ . - (the first a letter).
   */
  emit(event: string, data: unknown): void;
  /**
   * Lets readers of the run fetch a file. Returns its name among the run's files and the path of its route below the
   * mount path of the router. In events and in the response, each reader sees that path with the mount path in front.
   */
  addFile(file: { path: string; name?: string; contentType?: string }): { name: string; url: string };
  /**
   * Shows a picture of the moment, a PNG file, to clients of ComfyUI's classic API that listen now, as one of `node`, or of
   * the node that they see running. It is kept nowhere.
   */
  preview?(png: Uint8Array, node?: string): void;
}

/** The graphs of an agent, as they are now. */
export interface AgentGraphs {
  /** Graph for a request that does not name one. */
  readonly default: RunGraph;
  readonly names: readonly string[];
  /** Returns undefined for an unknown name. */
  find(name: string): RunGraph | undefined;
  /** Folder of uploaded bytes, which graphs that came with their requests refer to. */
  readonly assetsDir: string;
  /** Checks a graph that came with its request, or the part that `targets` need. Its assets exist. */
  validate(graph: object, targets?: readonly string[]): Promise<Validation>;
  /** Names of the node classes. */
  classes(): readonly string[];
  /** Describes a node class as ComfyUI does; undefined for an unknown one. */
  describe(classType: string): NodeDescription | undefined;
  /** Has the heads of new model files read off the thread, within a second or so; whether all have been. Absent: nothing to read. */
  refresh?(): Promise<boolean>;
  /** Names of the model files of a kind; undefined if there are no models of the kind. */
  models(kind: FileKind): readonly string[] | undefined;
  /** Returns a graph with values for its parameters put in. Throws graph.invalid and usage.invalid. */
  fill(graph: object, values: Record<string, unknown>): object;
  /** Returns a graph of the editor in API format, any other as it is. Throws graph.invalid. */
  toApi(graph: object): object;
  /** JSON Schema of the messages of a named graph; undefined for an unknown name. */
  schemaOf(name: string): object | undefined;
}

/**
 * The application's function that does the work of a run. A run whose agent throws has failed; if the error has
 * `retryable: true`, or a code that `retries.codes` lists, another attempt follows (docs/hooks-start.md#retries).
 */
export interface Agent {
  (run: AgentRun, context: AgentContext): Promise<{ response: string }>;
  /**
   * Looks at the message of a request before its run exists, at once. A LatentkitError that it throws refuses the request
   * with 400 and its sentence. Not asked for events that wait for a heartbeat.
   */
  readonly check?: (message: string, graph?: RunGraph) => void;
  /** Graphs that requests can name; absent: none. */
  readonly graphs?: AgentGraphs;
}
