import { AsyncLocalStorage } from "node:async_hooks";
import type { Agent } from "../../agent/agent.js";
import { type Clock, type SteadyWall, steadyWall, withWall } from "../clock.js";
import type { FileStore } from "../files/file-store.js";
import type { RunOrigin, RunState, TerminalState } from "../run.js";
import type { Receiver } from "../store/deliveries.js";
import { type EventBatch, type EventLimits, type LostRuns, NO_EVENTS } from "../store/queue-store.js";
import { isShared, type Store } from "../store/store.js";
import { EventBus } from "./event-bus.js";
import type { Outcome, RetryPolicy } from "./outcome.js";

/** Listener of metrics and logs. Never called with a message, a token or the text of a session key. */
export interface RunObserver {
  created?(run: { id: string; origin: RunOrigin }): void;
  started?(run: { id: string; waitedMs: number }): void;
  finished?(run: { id: string; state: TerminalState; ranMs: number | null }): void;
  /** Reports an attempt that failed, 1 for the first, and that another one follows. */
  retried?(run: { id: string; attempt: number }): void;
  /** Reports runs that were taken from lost workers, or from an earlier process. */
  recovered?(lost: LostRuns): void;
  /** Receives a picture of a moment of a run, a PNG file, and the node that it is of. */
  previewed?(id: string, png: Uint8Array, node?: string): void;
  /** Reports a warning of a run's graph, of which a sentence may quote a value. */
  warned?(id: string, message: string): void;
  /** Reports an attempt to store a file, successful or not. */
  fileStored?(file: { isStored: boolean; ms: number }): void;
  /** Reports a failure that no response shows: of the store, or an agent's misuse. */
  fault?(what: string, error: unknown): void;
}

/** Parts that a service or a worker brings for its runs. */
export interface RunParts {
  readonly agent: Agent;
  /** Agent of runs that a batch has queued, which no request can start. Without it, they fail. */
  readonly batchAgent?: Agent;
  readonly store: Store;
  readonly files: FileStore;
  readonly clock: Clock;
  readonly eventLimits: EventLimits;
  readonly retries: RetryPolicy;
  readonly observer: RunObserver;
  /** Webhooks notified of runs that end in a state. */
  readonly receiversOf?: (state: TerminalState) => readonly Receiver[];
}

/** Everything that the queue, the tasks and the retention of one service share. */
export interface RunContext extends RunParts {
  /** Id of the run whose agent's code is executing, in its timers and callbacks too. */
  readonly current: AsyncLocalStorage<string>;
  /** Steady ms for expiry (clock.ts). */
  readonly mark: SteadyWall;
  readonly bus: EventBus;
}

export function createRunContext(parts: RunParts): RunContext {
  const { clock, store } = parts;
  const mark = steadyWall(clock);
  // processes that share a store share its time too
  const own = isShared(store) ? withWall(clock, mark) : clock;
  return { ...parts, clock: own, mark, bus: new EventBus(), current: new AsyncLocalStorage() };
}

/**
 * Stores the end of a run that is in a state of `from`, after its last events, and wakes its readers. Returns false if
 * the run is in another state. Fails with store_unavailable.
 */
export async function storeEnding(
  { store, clock, mark, eventLimits, bus, receiversOf }: RunContext,
  id: string,
  from: readonly RunState[],
  { state: to, terminal, error }: Outcome,
  lastEvents: EventBatch = NO_EVENTS,
  token?: number,
): Promise<boolean> {
  const times = { finishedAt: clock.now(), endedMark: mark() };
  const ending = { from, to, ...times, error, terminal, receivers: receiversOf?.(to) };
  const isEnded = await store.endRun(id, ending, lastEvents, eventLimits, token);
  bus.wake(id);
  if (isEnded && bus.groups.size > 0) await wakeGroup(store, bus, id);
  return isEnded;
}

async function wakeGroup(store: Store, bus: EventBus, runId: string): Promise<void> {
  try {
    const group = await store.groupOf(runId);
    if (group !== null) bus.wake(group);
  } catch {
    // the end is stored all the same: whichever group it was, its readers look
    for (const group of bus.groups) bus.wake(group);
  }
}

/** Work with the store that may fail: each time that the store cannot be reached is reported once. */
export class StoreTurns {
  readonly #context: Pick<RunContext, "clock" | "observer">;
  #last: Promise<unknown> = Promise.resolve();
  isFailing = false;
  /** Monotonic ms of the last failure. */
  failedAt = Number.NEGATIVE_INFINITY;

  constructor(context: Pick<RunContext, "clock" | "observer">) {
    this.#context = context;
  }

  /** Resolves to the result, or to undefined after a failure. */
  async try<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      this.isFailing = false;
      return result;
    } catch (error) {
      if (!this.isFailing) this.#context.observer.fault?.("store", error);
      this.isFailing = true;
      this.failedAt = this.#context.clock.monotonic();
      return undefined;
    }
  }

  /** Tries work once all work before it is done. */
  next<T>(work: () => Promise<T>): Promise<T | undefined> {
    const turn = this.#last.then(() => this.try(work));
    this.#last = turn;
    return turn;
  }

  /** Resolves when all work so far is done. */
  async done(): Promise<void> {
    await this.#last;
  }
}
