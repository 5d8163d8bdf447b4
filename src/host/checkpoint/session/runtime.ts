import type { NetworkMemory } from "../../../base/bytes.js";
import { FUNCTION, type OptionRules } from "../../../base/options.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Target } from "../onnx/target.js";
import { NETWORK_DEVICES, type NetworkDevice, PLANS, type Plan, type Provider } from "./options.js";
import type { Feed, LoadedSession, SessionPorts, SessionSource } from "./sessions.js";

/** Where a call comes from, by which calls take turns. */
export interface Place {
  /** Names its run. */
  readonly run: string;
  /** Calls of a lower rank go first: of a batch, the position of the item; 0 for runs that share fairly. */
  readonly rank: number;
}

/** Options of `createRuntime`. */
export interface RuntimeOptions {
  /** Number of threads of one run; the number of cores by default. */
  threads?: number;
  /** Bytes of memory for weights, on a GPU its own; by default as much as is free, and on a GPU as much as it takes. */
  memory?: number;
  /**
   * Where networks run: a provider of ONNX Runtime, or "auto" for the first one that computes correctly here and is faster than
   * the CPU. By default the first for which a trial has found that before, else the CPU.
   */
  device?: NetworkDevice;
  /** Way to hold weights; by default chosen for each network. */
  plan?: Plan;
  /** Called when a GPU has been chosen, and when "auto" has found none: `reason` then says why in a sentence. */
  onDevice?: (report: DeviceReport) => void;
  /** Called when a network begins to load, with estimates of its memory, has been loaded, and has been released. */
  onLoad?: (label: string, state: LoadState, memory?: NetworkMemory) => void;
}

/** Inputs of a run by name. */
export type Feeds = Readonly<Record<string, Feed>>;

export type LoadState = "loading" | "loaded" | "released";

const MAX_THREADS = 256;

export const RUNTIME_RULES: OptionRules<RuntimeOptions> = {
  threads: [
    `a whole number from 1 to ${MAX_THREADS}`,
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_THREADS,
  ],
  memory: ["a number of bytes", (value) => typeof value === "number" && value >= 0],
  device: [NETWORK_DEVICES.join(", "), (value) => NETWORK_DEVICES.includes(value as NetworkDevice)],
  plan: [PLANS.join(", "), (value) => PLANS.includes(value as Plan)],
  onLoad: FUNCTION,
  onDevice: FUNCTION,
};

/** A network that runs before another one in the same call; its output NAME is the other's input `NAME.N` for stage N. */
export interface Stage {
  readonly source: SessionSource;
  readonly feeds: Feeds;
  /** As in CallOptions. */
  readonly keep?: readonly string[];
}

/** Options of one run. */
export interface CallOptions {
  /** Networks whose outputs are inputs of this one: they stay where they were computed. */
  readonly stages?: readonly Stage[];
  /** Ends the wait at once. */
  readonly signal?: AbortSignal;
  /** Inputs that come again and never change: they are sent once. */
  readonly keep?: readonly string[];
  /** Number of runs of this network to expect, which decides how to load it; 1 by default. */
  readonly calls?: number;
  /** Names of the outputs to compute; all by default. */
  readonly outputs?: readonly string[];
  /** Equal calls of runs that share a runtime are computed once. */
  readonly isShared?: boolean;
  /** By which calls of several runs take turns; first come, first served by default. */
  readonly place?: Place;
  /** Called as that of the runtime, for networks that this call loads and releases. */
  readonly onLoad?: NonNullable<RuntimeOptions["onLoad"]>;
}

/** Options of loading without a run. */
export type LoadOptions = Pick<CallOptions, "signal" | "calls" | "place" | "onLoad">;

/** A network that has run. */
export interface RunNetwork {
  /** Key of its source. */
  readonly key: string;
  readonly label: string;
  readonly plan: Plan;
  /** Paths of the files of its weights, without symbolic links. */
  readonly files: readonly string[];
}

const MOST_NETWORKS = 256;

/** Networks that have run, with the plan of the last run; least recently run first, at most 256. */
export class RunNetworks {
  readonly #byKey = new Map<string, RunNetwork>();

  get all(): readonly RunNetwork[] {
    return [...this.#byKey.values()];
  }

  add(network: RunNetwork): void {
    this.#byKey.delete(network.key);
    this.#byKey.set(network.key, network);
    if (this.#byKey.size > MOST_NETWORKS) this.#byKey.delete(this.#byKey.keys().next().value!);
  }
}

/** Where networks run, as receipts report it. */
export interface DeviceFacts {
  readonly provider: Provider;
  /** Name and driver of the GPU, if the system reports them. */
  readonly adapter?: string;
  /** How attention is computed on a GPU, by one operator or written out; on a CPU, that 3x3 convolutions are, in tiles. */
  readonly form?: Target["attention"] | "tiles";
}

/** The chosen device; `reason` is a sentence that says why it is not a GPU. */
export type DeviceReport = DeviceFacts & { readonly reason?: string };

/** Facts about a runtime that a receipt reports. */
export interface RuntimeFacts {
  /** Version of onnxruntime-node; undefined before the first run. */
  readonly version?: string;
  /** Undefined before the first run, unless the CPU was requested. */
  readonly device?: DeviceFacts;
  readonly threads: number;
  /** Networks that have run, with the plan of the last run; least recently run first, at most 256. */
  readonly networks: readonly RunNetwork[];
}

/** Runs networks in ONNX Runtime. */
export interface Runtime {
  /**
   * Runs a network once and returns its outputs; runs take turns. Rejects with the signal's reason, runtime.missing,
   * device.unavailable, the errors of the source's `verify`, runtime.failed if the run failed or the process died in it,
   * and device.lost if a GPU failed. The next run then gets a new process.
   */
  run(source: SessionSource, feeds: Feeds, options?: CallOptions): Promise<Record<string, Tensor>>;
  /** Loads a network unless it is loaded, and returns its inputs and outputs. Rejects as `run`. */
  ports(source: SessionSource, options?: LoadOptions): Promise<SessionPorts>;
  /** Returns the facts for a receipt. */
  describe(): RuntimeFacts;
}

/** State of a runtime of this thread. */
export interface RuntimeState extends RuntimeFacts {
  readonly processId?: number;
  /** Least recently used first. */
  readonly sessions: readonly LoadedSession[];
}

/** Outputs of one run, and the networks that ran as a receipt names them. */
export interface RunResult {
  readonly outputs: Record<string, Tensor>;
  readonly networks: readonly RunNetwork[];
}

/** ONNX Runtime in a child process, which starts with the first run and ends with this process. */
export interface OwnRuntime extends Runtime {
  /** `run`, with the networks that ran. */
  call(source: SessionSource, feeds: Feeds, options?: CallOptions): Promise<RunResult>;
  /** Starts the process before a run needs it. A run that needs it reports its errors. */
  start(): void;
  /** Forgets a run that is over. */
  forget(run: string): void;
  /** Forgets tensors that were kept: no later run has them. */
  drop(tensors: Iterable<Tensor>): void;
  describe(): RuntimeState;
  /** Interrupts all runs with run.interrupted and releases all memory. A later run starts again. */
  close(): Promise<void>;
}
