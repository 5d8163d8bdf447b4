/** The run as its agent sees it. */
export interface AgentRun {
  readonly id: string;
  readonly sessionKey: string;
  /** Pending system events first, one line each, then the request's message. */
  readonly message: string;
  readonly name: string | null;
  /** Number of the run's start, from 2 where an attempt failed or a worker was lost: earlier starts' files are not read. */
  readonly attempt?: number;
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
}

/**
 * The application's function that does the work of a run. A run whose agent throws has failed; where the error has
 * `retryable: true`, or a code that `retries.codes` lists, another attempt follows (docs/hooks.md).
 */
export interface Agent {
  (run: AgentRun, context: AgentContext): Promise<{ response: string }>;
  /**
   * Looks at the message of a request before its run exists, at once. A LatentkitError that it throws refuses the request
   * with 400 and its sentence. Not asked for wakes.
   */
  readonly check?: (message: string) => void;
}
