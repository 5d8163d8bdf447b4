import type { AsyncLocalStorage } from "node:async_hooks";
import type { Clock, Timer } from "../clock.js";
import { HookError } from "../hook-error.js";
import type { EventBatch, Keep, Store } from "../store/store.js";
import type { Agent, RunObserver, RunRow } from "../types.js";
import { AgentOutput } from "./agent-output.js";
import { EventBuffer } from "./event-buffer.js";
import type { EventBus } from "./event-bus.js";
import { answered, cancelled, failed, interrupted, type Outcome, timedOut } from "./outcome.js";
import { toJsonLine } from "./safe-json.js";

/** How long an ended run's agent keeps its slot when it does not return. */
const ABORT_GRACE_MS = 1000;
const RETRY_MS = 1000;

/** What the parts of the engine share. */
export interface Engine {
  readonly agent: Agent;
  /** Whose agent's code is being executed, in its timers and callbacks too. */
  readonly current: AsyncLocalStorage<string>;
  readonly store: Store;
  readonly clock: Clock;
  /** Steady ms for expiry (clock.ts). */
  readonly mark: () => number;
  readonly keep: Keep;
  readonly bus: EventBus;
  readonly observer: RunObserver;
}

/** One run from its slot to its terminal event: whatever the agent does, there is exactly one. */
export class RunTask {
  readonly #id: string;
  readonly #waitedMs: number;
  readonly #engine: Engine;
  readonly #buffer: EventBuffer;
  readonly #output: AgentOutput;
  readonly #abort = new AbortController();
  readonly #outcome = deferred<Outcome>();
  #attempt = deferred<HookError | null>();
  #hasEnded = false;
  #hasGivenUp = false;
  #flushing: Promise<void> | undefined;
  #isFlushDue = false;
  #pause: Timer | undefined;
  #endPause: (() => void) | undefined;

  constructor(id: string, waitedMs: number, engine: Engine) {
    this.#id = id;
    this.#waitedMs = waitedMs;
    this.#engine = engine;
    this.#buffer = new EventBuffer(engine.keep);
    this.#output = new AgentOutput(id, this.#buffer, engine.keep.events, () => this.#flushSoon());
  }

  /** Resolves when the slot is free again; rejects where the run could not be started and is still queued. */
  async work(): Promise<void> {
    const { store, clock, bus, observer } = this.#engine;
    const status = { event: "status", data: toJsonLine({ message: "The run has started.", state: "running" }) };
    const row = await this.#start(() => store.startRun(this.#id, clock.now(), status));
    if (row === null) return this.#attempt.resolve(null);
    const startedAt = clock.monotonic();
    bus.wake(this.#id);
    observer.started?.({ id: this.#id, waitedMs: this.#waitedMs });
    const { timeoutSeconds } = row;
    const timer = clock.setTimer(timeoutSeconds * 1000, () => this.#end(timedOut(timeoutSeconds)));
    const settled = this.#hasEnded ? Promise.resolve() : this.#callAgent(row);
    const outcome = await this.#outcome.promise;
    timer.cancel();
    const isStored = await this.#storeEnding(outcome);
    if (isStored) observer.finished?.({ id: this.#id, state: outcome.state, ranMs: clock.monotonic() - startedAt });
    await this.#settledOrGrace(settled);
  }

  cancel(): void {
    this.#end(cancelled(this.#output.partialText));
  }

  fail(thrown: unknown): void {
    this.#end(failed(thrown));
  }

  interrupt(): void {
    this.#end(interrupted());
  }

  /** Null when the terminal event is stored (here or by others), the error when the next attempt to store it fails. */
  whenStored(): Promise<HookError | null> {
    return this.#attempt.promise;
  }

  /** No further attempt to store the ending: the next start of the service will. */
  giveUp(): void {
    this.#hasGivenUp = true;
    this.#endPause?.();
  }

  /** The first ending wins; the agent is told unless it ended itself. */
  #end(outcome: Outcome): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#output.close();
    this.#outcome.resolve(outcome);
    const isOwn = outcome.state === "succeeded" || outcome.state === "failed";
    if (!isOwn) this.#abort.abort(new DOMException(`The run was ended (${outcome.state}).`, "AbortError"));
  }

  async #start(start: () => Promise<RunRow | null>): Promise<RunRow | null> {
    try {
      return await start();
    } catch (error) {
      this.#failAttempt(error);
      throw error;
    }
  }

  async #callAgent({ id, sessionKey, message, name }: RunRow): Promise<void> {
    try {
      const { agent, current } = this.#engine;
      const context = this.#output.context(this.#abort.signal);
      const answer = await current.run(id, () => agent({ id, sessionKey, message, name }, context));
      this.#end(answered(answer, this.#engine.keep.bytes));
    } catch (error) {
      this.#end(failed(error));
    }
  }

  /** True where this call wrote the terminal event. */
  async #storeEnding(outcome: Outcome): Promise<boolean> {
    const { store, clock, mark, keep, bus } = this.#engine;
    for (;;) {
      let rest: EventBatch | undefined;
      try {
        if (this.#flushing !== undefined || !this.#buffer.isShort) await this.#flush();
        const { state: to, terminal, error } = outcome;
        const ending = { from: ["running"] as const, to, finishedAt: clock.now(), endedMark: mark(), error, terminal };
        rest = this.#buffer.take();
        const row = await store.endRun(this.#id, ending, rest, keep);
        bus.wake(this.#id);
        this.#attempt.resolve(null);
        return row !== null;
      } catch (error) {
        if (rest !== undefined) this.#buffer.restore(rest);
        this.#failAttempt(error);
        if (this.#hasGivenUp) return false;
        await this.#waitForRetry();
      }
    }
  }

  #failAttempt(error: unknown): void {
    this.#engine.observer.fault?.("store", error);
    const { resolve } = this.#attempt;
    this.#attempt = deferred();
    resolve(error instanceof HookError ? error : new HookError("store_unavailable", undefined, { cause: error }));
  }

  async #waitForRetry(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#engine.clock.setTimer(RETRY_MS, resolve, true);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#endPause = undefined;
  }

  async #settledOrGrace(settled: Promise<void>): Promise<void> {
    let timer: Timer | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = this.#engine.clock.setTimer(ABORT_GRACE_MS, resolve, true);
    });
    await Promise.race([settled, grace]);
    timer?.cancel();
  }

  /** All events of one turn of the event loop go in one transaction. */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#flushing !== undefined || this.#pause !== undefined) return;
    this.#isFlushDue = true;
    setImmediate(() => {
      this.#isFlushDue = false;
      if (!this.#hasEnded) this.#flush().catch((error: unknown) => this.#flushLater(error));
    });
  }

  #flushLater(error: unknown): void {
    this.#engine.observer.fault?.("store", error);
    this.#pause = this.#engine.clock.setTimer(RETRY_MS, () => {
      this.#pause = undefined;
      this.#flushSoon();
    });
  }

  #flush(): Promise<void> {
    if (this.#flushing === undefined && this.#buffer.isEmpty) return Promise.resolve();
    this.#flushing ??= this.#pump();
    return this.#flushing;
  }

  async #pump(): Promise<void> {
    const { store, keep, bus } = this.#engine;
    try {
      while (!this.#buffer.isEmpty) {
        const batch = this.#buffer.take();
        try {
          // not running any more in the store: others ended it, and `endRun` will find so
          if (!(await store.append(this.#id, batch, keep))) return this.#end(interrupted());
        } catch (error) {
          this.#buffer.restore(batch);
          throw error;
        }
        bus.wake(this.#id);
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      // in the same step as the last look at the buffer, or an event in between would wait for the next one
      this.#flushing = undefined;
    }
  }
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
