import type { NetworkMemory } from "../base/bytes.js";
import type { LatentkitError } from "../base/errors.js";

/** UI results of one node: lists by key, as ComfyUI's clients read them. */
export type NodeUi = Record<string, unknown[]>;

export type RunStatus = "success" | "failed" | "interrupted";

/** An event of a run, in order; `at` is the time of the clock in milliseconds. */
export type RunEvent = {
  readonly at: number;
} & (
  | {
      readonly type: "run-start";
      readonly runId: string;
      readonly nodeIds: readonly string[];
      /** Outputs that are not computed because a node they need is invalid; absent if there are none. */
      readonly leftOut?: readonly string[];
    }
  /** Nodes whose results an earlier run left in the cache. */
  | { readonly type: "cached"; readonly nodeIds: readonly string[] }
  /** A node that needs lazy inputs starts again with them. `displayId`: the graph's node that an inner node belongs to. */
  | { readonly type: "node-start"; readonly nodeId: string; readonly displayId: string }
  | {
      readonly type: "progress";
      readonly nodeId: string;
      readonly value: number;
      readonly max: number;
      readonly preview?: unknown;
    }
  /**
   * `outputs` are in output order: a value, or the list of values of a list output or of a node that ran for several
   * elements. A result taken from the cache or from an equal node comes without node-start.
   */
  | {
      readonly type: "node-done";
      readonly nodeId: string;
      readonly displayId: string;
      readonly outputs: unknown[];
      readonly ui?: NodeUi;
      readonly ms: number;
    }
  /** `inputs`: the values that the node received, large ones in words. */
  | {
      readonly type: "node-error";
      readonly nodeId: string;
      readonly error: LatentkitError;
      readonly inputs: Record<string, unknown[]>;
    }
  /** A blocker kept the node from running; `message` is the blocker's, at its direct consumers only. */
  | { readonly type: "blocked"; readonly nodeId: string; readonly message?: string }
  | { readonly type: "warning"; readonly nodeId?: string; readonly message: string }
  /** A network that a thread has loaded or released for the run. `memory` has estimates when it begins to load. */
  | {
      readonly type: "network";
      readonly network: string;
      readonly state: "loading" | "loaded" | "released";
      readonly memory?: NetworkMemory;
    }
  | { readonly type: "interrupted"; readonly nodeId?: string }
  | {
      readonly type: "run-done";
      readonly status: RunStatus;
      /** Output values of the targets. */
      readonly outputs: Record<string, unknown[]>;
      readonly ui: Record<string, NodeUi>;
    }
);

type WithoutTime<Event> = Event extends unknown ? Omit<Event, "at"> : never;
/** An event before the run stamps it. */
export type Happening = WithoutTime<RunEvent>;
