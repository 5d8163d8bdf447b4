// The responses of the service, as far as the page reads them; docs/hooks.md describes them.

export const STATES = [
  "queued",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "timed_out",
  "interrupted",
  "expired",
] as const;
export type RunState = (typeof STATES)[number];

export interface Run {
  readonly run_id: string;
  readonly status: RunState;
  readonly done: boolean;
  readonly session_key: string;
  readonly origin: string;
  readonly name: string | null;
  readonly priority?: number;
  readonly tags?: readonly string[];
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly timeout_seconds: number;
  readonly last_event_id: number;
  readonly error: string | null;
  readonly error_code: string | null;
}

/** A run as the page lists it. */
export interface ListedRun extends Run {
  /** First words of its message or prompt; "" where it has none. */
  readonly title: string;
  /** Signed address of its first picture, relative to the page. */
  readonly thumbnail: string | null;
}

export interface Progress {
  readonly value: number;
  readonly max: number;
  readonly node: string | null;
}

export interface RunDetail extends Run {
  readonly queue_position: number | null;
  readonly progress: Progress | null;
  readonly files: readonly { readonly name: string; readonly content_type: string | null }[];
  readonly file_count: number;
  readonly response: string | null;
}

export interface RunPage {
  readonly runs: readonly ListedRun[];
  readonly next_cursor: string | null;
  /** Numbers of the newest and the oldest run that were looked at; 0 for all there are. */
  readonly from: number;
  readonly to: number;
}

/** Values that a run was started with. */
export interface RunStart {
  readonly title: string;
  readonly values: readonly (readonly [name: string, value: string])[];
}

/** Fields of a run that is started again. */
export interface RunForm {
  /** null: one message. */
  readonly parameters: readonly Parameter[] | null;
  readonly values: Readonly<Record<string, string>>;
  /** The graph that the run brought; null where it is one of the service, or no other may be run. */
  readonly text: string | null;
}

export interface RunEvent {
  readonly id: number;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Picture {
  readonly run_id: string;
  readonly name: string;
  /** First words of its message or prompt; "" where it has none. */
  readonly title: string;
  readonly models: readonly string[];
  /** Signed, relative to the page. */
  readonly url: string;
  readonly session_key: string;
  readonly created_at: string;
}

export interface GraphNode {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  readonly is_known: boolean;
  readonly inputs: readonly {
    readonly name: string;
    readonly value?: string;
    readonly from?: { readonly node: string; readonly output: number };
  }[];
  readonly outputs: readonly { readonly name: string; readonly type: string }[];
}

export interface Parameter {
  readonly key: string;
  readonly title: string;
  /** The graph's author named it. */
  readonly named?: boolean;
  /** The use of an input that most people change. */
  readonly role?: string;
  readonly description?: string;
  readonly required: boolean;
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | number | boolean)[];
  readonly minimum?: number | string;
  readonly maximum?: number | string;
  readonly default?: string | number | boolean;
}

/** A graph of the service, with the JSON Schema of the messages that it takes. */
export interface NamedGraph {
  readonly name: string;
  readonly default: boolean;
  readonly schema: {
    readonly properties: Readonly<Record<string, Omit<Parameter, "key" | "required">>>;
    readonly required: readonly string[];
  };
}

export interface Receipt {
  readonly engine: string;
  readonly graph: string;
  readonly node: string;
  readonly index: number;
  readonly pixels: string;
  readonly seeds: Readonly<Record<string, string>>;
  readonly noise: Readonly<Record<string, string>>;
  readonly inputs: Readonly<Record<string, string>>;
  readonly host: { readonly name: string; readonly preview: boolean };
  readonly models?: Readonly<Record<string, string>>;
  readonly runtime?: {
    readonly name: string;
    readonly version: string;
    readonly provider: string;
    readonly adapter?: string;
  };
}

export interface Inspection {
  readonly format: string;
  readonly graph: {
    readonly nodes: readonly GraphNode[];
    readonly parameters: readonly Parameter[];
    /** In API format, where the service runs any graph. */
    readonly text: string | null;
  } | null;
  readonly problem: string | null;
  readonly receipt: Receipt | null;
  /** Graph of the service that this one is, and its values. */
  readonly served: { readonly name: string; readonly values: Readonly<Record<string, string>> } | null;
  readonly texts: Readonly<Record<string, string>>;
}

type DescribedInput = readonly [string | readonly (string | number | boolean)[], Readonly<Record<string, unknown>>];

export interface NodeDescription {
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly category: string;
  readonly input: {
    readonly required: Readonly<Record<string, DescribedInput>>;
    readonly optional?: Readonly<Record<string, DescribedInput>>;
  };
  readonly input_order: { readonly required: readonly string[]; readonly optional?: readonly string[] };
  readonly output: readonly string[];
  readonly output_name: readonly string[];
}

export interface Model {
  readonly kind: string;
  readonly name: string;
  readonly bytes: number;
  readonly family?: string;
  readonly refusal?: string;
  readonly dtypes: readonly string[];
  readonly parameters?: number;
}
