import type { NetworkMemory } from "../../../../base/bytes.js";
import type { SentError } from "../../../../base/sent-error.js";
import type { EncodedGraph } from "../../onnx/graph.js";
import type { Target } from "../../onnx/target.js";
import type { Plan } from "../../session/options.js";
import type { CallOptions, LoadState, Place, RunNetwork, RuntimeFacts } from "../../session/runtime.js";
import type { SessionPorts, SessionSource } from "../../session/sessions.js";

// Messages between a thread that renders and the one that has the runtime. Values move between the two directly.

/** A network without the function that writes its graph, which stays where the network was recognised. */
export type SentSource = Omit<SessionSource, "make">;

/** Value of one input. */
export type SentInput =
  | { readonly int64: readonly number[]; readonly shape: readonly number[] }
  | {
      readonly shape: readonly number[];
      /** Absent for kept values that were sent before. */
      readonly values?: Float32Array;
      /** Number by which later calls of the same thread name these values. */
      readonly kept?: number;
    };

export interface SentStage {
  readonly source: SentSource;
  readonly feeds: Readonly<Record<string, SentInput>>;
}

export interface RunCall extends Pick<CallOptions, "calls" | "outputs" | "isShared"> {
  readonly type: "run";
  /** The last one is the network whose outputs are wanted. */
  readonly stages: readonly SentStage[];
  readonly place: Place;
}

export interface PortsCall extends Pick<CallOptions, "calls"> {
  readonly type: "ports";
  readonly source: SentSource;
  readonly place: Place;
}

export type ThreadCall = RunCall | PortsCall | { readonly type: "hash"; readonly path: string };

/** A question about a stage of a call, to the thread that made it; the network of a call for ports is stage 0. */
export type Question = { readonly stage: number } & (
  | { readonly type: "graph"; readonly plan: Plan; readonly target: Target }
  /** Kept values that are no longer there, by the name of their input. */
  | { readonly type: "values"; readonly input: string }
);

export type ThreadReply =
  | { readonly graph: EncodedGraph | { readonly path: string } }
  | { readonly values: Float32Array }
  | { readonly error: SentError };

export type ToRuntime =
  | { readonly type: "call"; readonly id: number; readonly call: ThreadCall }
  | { readonly type: "abort"; readonly id: number }
  | { readonly type: "reply"; readonly question: number; readonly reply: ThreadReply }
  /** A run is over: it makes no more calls. */
  | { readonly type: "over"; readonly run: string };

/** One output. */
export interface MovedOutput {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export type Outcome =
  | {
      readonly outputs: Readonly<Record<string, MovedOutput>>;
      readonly networks: readonly RunNetwork[];
      readonly facts: Omit<RuntimeFacts, "networks">;
    }
  | { readonly ports: SessionPorts }
  | { readonly hash: string }
  | { readonly error: SentError };

/** A network that is loaded or released for a call. */
export interface NetworkReport {
  readonly label: string;
  readonly state: LoadState;
  readonly memory?: NetworkMemory;
}

export type FromRuntime =
  | { readonly type: "outcome"; readonly id: number; readonly outcome: Outcome }
  | { readonly type: "question"; readonly id: number; readonly question: number; readonly asked: Question }
  | ({ readonly type: "network"; readonly id: number } & NetworkReport);
