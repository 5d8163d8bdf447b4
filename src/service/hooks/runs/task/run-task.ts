import { LatentkitError } from "../../../../base/errors.js";
import type { Agent } from "../../../agent.js";
import type { Timer } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import type { RunRow, TerminalState } from "../../run.js";
import type { EventBatch, NextAttempt } from "../../store/store.js";
import { cancelled, failed, interrupted, type Outcome, pastDeadline, returned, timedOut } from "../outcome.js";
import { type RunContext, storeEnding } from "../run-context.js";
import { toJsonLine } from "../safe-json.js";
import { AgentOutput } from "./agent-output.js";
import { EventBuffer } from "./event-buffer.js";
import { nextAttempt, storeRetry } from "./retries.js";
import { RunFiles } from "./run-files.js";

/** Time for which the agent of an ended run keeps its slot when it does not return. */
const ABORT_GRACE_MS = 1000;
const RETRY_MS = 1000;
/** One attempt of a run, from its slot to its terminal event or the next attempt: exactly one, whatever the agent does. */
export class RunTask {
  readonly #id: string;
  readonly #waitedMs: number;
  readonly #context: RunContext;
  readonly #buffer: EventBuffer;
  readonly #output: AgentOutput;
  readonly #startNumber: number;
  readonly #abort = new AbortController();
  readonly #outcome = deferred<Outcome>();
  #attempt = deferred<HookError | null>();
  #hasEnded = false;
  #hasGivenUp = false;
  readonly #files: RunFiles;
  /** Error that the agent failed with. */
  #failure: { readonly error: unknown } | undefined;
  /** Outcome of a run that was cut off after its agent, and counts where that left a file out. */
  #late: Outcome | undefined;
  #isRetried = false;
  #flushing: Promise<void> | undefined;
  #isFlushDue = false;
  #pause: Timer | undefined;
  #endPause: (() => void) | undefined;

  /** `attempt`: number of the run's start. */
  constructor(id: string, waitedMs: number, context: RunContext, attempt = 1) {
    this.#id = id;
    this.#waitedMs = waitedMs;
    this.#context = context;
    this.#startNumber = attempt;
    const { eventLimits, observer } = context;
    this.#buffer = new EventBuffer(eventLimits);
    this.#files = new RunFiles(id, context, this.#abort.signal, (error) => {
      this.#end(failed(error));
      this.#abort.abort(new DOMException("A file of the run could not be stored.", "AbortError"));
    });
    const flush = () => this.#flushSoon();
    this.#output = new AgentOutput(id, this.#buffer, eventLimits.events, flush, {
      onPreview: (png, node) => observer.previewed?.(id, png, node),
      onWarning: (message) => observer.warned?.(id, message),
    });
  }

  /**
   * Resolves when the slot is free again, to the next attempt if one follows; rejects where the run could not be started
   * and is still queued.
   */
  async work(): Promise<NextAttempt | undefined> {
    const { store, clock, bus, observer } = this.#context;
    const status = { event: "status", data: toJsonLine({ message: "The run has started.", state: "running" }) };
    const row = await this.#start(() => store.startRun(this.#id, clock.now(), status));
    if (row === null) {
      this.#attempt.resolve(null);
      return undefined;
    }
    const startedAt = clock.monotonic();
    bus.wake(this.#id);
    observer.started?.({ id: this.#id, waitedMs: this.#waitedMs });
    const { timeoutSeconds, deadlineMark } = row;
    const timeoutMs = timeoutSeconds * 1000;
    const deadlineMs = deadlineMark === null ? Number.POSITIVE_INFINITY : deadlineMark - this.#context.mark();
    const timer = clock.setTimer(Math.min(timeoutMs, deadlineMs), () =>
      this.#end(deadlineMs < timeoutMs ? pastDeadline("timed_out", deadlineMark!) : timedOut(timeoutSeconds)),
    );
    if (deadlineMs <= 0) this.#end(pastDeadline("expired", deadlineMark!));
    const settled = this.#hasEnded ? Promise.resolve() : this.#callAgent(row);
    const outcome = await this.#outcome.promise;
    timer.cancel();
    const end = await this.#storeEnding(outcome, row);
    if (typeof end === "string") {
      observer.finished?.({ id: this.#id, state: end, ranMs: clock.monotonic() - startedAt });
    } else if (end !== null) observer.retried?.({ id: this.#id, attempt: row.attempt });
    await this.#settledOrGrace(settled);
    // an interrupted run may start again at once, in the same folder
    if (end !== null && end !== "interrupted") await this.#files.tidy(this.#attemptOf(row));
    return typeof end === "string" || end === null ? undefined : end;
  }

  cancel(): void {
    this.#cut(cancelled(this.#output.partialText));
  }

  /** Whether the run is queued for another attempt. */
  get isRetried(): boolean {
    return this.#isRetried;
  }

  fail(thrown: unknown): void {
    this.#end(failed(thrown));
  }

  interrupt(): void {
    this.#cut(interrupted());
  }

  /** Resolves to null when the terminal event is stored (here or elsewhere), to the error when the next attempt fails. */
  whenStored(): Promise<HookError | null> {
    return this.#attempt.promise;
  }

  /** Stops the attempts to store the ending: the next start of the service will. */
  giveUp(): void {
    this.#hasGivenUp = true;
    this.#endPause?.();
  }

  /** Ends the run from outside: its agent, or the storing of its last files. */
  #cut(outcome: Outcome): void {
    if (this.#hasEnded) {
      this.#late ??= outcome;
      this.#abort.abort(new DOMException(`The run was ended (${outcome.state}).`, "AbortError"));
    } else this.#end(outcome);
  }

  /** Settles the outcome: the first one wins. Aborts the agent unless it ended itself. */
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

  /** Number of this start: a worker counts those that were lost too. */
  #attemptOf({ attempt }: RunRow): number {
    return Math.max(this.#startNumber, attempt);
  }

  async #callAgent(row: RunRow): Promise<void> {
    const { id, sessionKey, message, name, graph, traceparent, promptFacts, origin } = row;
    try {
      const { current, eventLimits, batchAgent } = this.#context;
      // decision 269
      // never the other one's: it would take a batch for a prompt
      const agent = origin === "batch" ? (batchAgent ?? refuseBatch) : this.#context.agent;
      const context = this.#output.context(this.#abort.signal);
      const attempt = this.#attemptOf(row);
      const again = attempt > 1 ? { attempt } : {};
      const own = {
        ...(graph !== null && { graph }),
        ...(traceparent !== null && { traceparent }),
        ...(promptFacts !== null && { promptFacts }),
      };
      const run = { id, sessionKey, message, name, ...own, ...again };
      const result = await current.run(id, () => agent(run, context));
      this.#end(returned(result, eventLimits.bytes));
    } catch (error) {
      if (!this.#hasEnded) this.#failure = { error };
      this.#end(failed(error));
    }
  }

  /** Returns the state where this call wrote the terminal event, the next attempt where one follows, else null. */
  async #storeEnding(settled: Outcome, run: RunRow): Promise<TerminalState | NextAttempt | null> {
    for (;;) {
      let lastEvents: EventBatch | undefined;
      try {
        if (this.#flushing !== undefined || !this.#buffer.isShort) await this.#flush();
        lastEvents = this.#buffer.take();
        lastEvents = await this.#files.store(lastEvents);
        const outcome = settled.state === "succeeded" ? this.#withFiles(settled) : settled;
        const isCancelled = this.#late?.state === "cancelled";
        const retry = isCancelled
          ? undefined
          : nextAttempt(this.#context, run, outcome, this.#files.loss ?? this.#failure);
        if (retry !== undefined) {
          this.#isRetried = await storeRetry(this.#context, this.#id, retry, lastEvents);
          this.#attempt.resolve(null);
          return this.#isRetried ? retry : null;
        }
        const isStored = await storeEnding(this.#context, this.#id, ["running"], outcome, lastEvents);
        this.#attempt.resolve(null);
        return isStored ? outcome.state : null;
      } catch (error) {
        if (lastEvents !== undefined) this.#buffer.restore(lastEvents);
        this.#failAttempt(error);
        if (this.#hasGivenUp) return null;
        await this.#waitForRetry();
      }
    }
  }

  /** Outcome of a run whose agent succeeded: without all of its files the run has not. */
  #withFiles(outcome: Outcome): Outcome {
    const { loss, hasLeftOut } = this.#files;
    if (loss !== undefined) return failed(loss.error);
    return hasLeftOut ? (this.#late ?? interrupted()) : outcome;
  }

  #failAttempt(error: unknown): void {
    this.#context.observer.fault?.("store", error);
    const { resolve } = this.#attempt;
    this.#attempt = deferred();
    resolve(error instanceof HookError ? error : new HookError("store_unavailable", undefined, { cause: error }));
  }

  async #waitForRetry(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#context.clock.setTimer(RETRY_MS, resolve, true);
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
      timer = this.#context.clock.setTimer(ABORT_GRACE_MS, resolve, true);
    });
    await Promise.race([settled, grace]);
    timer?.cancel();
  }

  /** Flushes at the end of this turn of the event loop: all its events go in one transaction. */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#flushing !== undefined || this.#pause !== undefined) return;
    this.#isFlushDue = true;
    setImmediate(() => {
      this.#isFlushDue = false;
      if (!this.#hasEnded) this.#flush().catch((error: unknown) => this.#flushLater(error));
    });
  }

  #flushLater(error: unknown): void {
    this.#context.observer.fault?.("store", error);
    this.#pause = this.#context.clock.setTimer(RETRY_MS, () => {
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
    const { store, eventLimits, bus } = this.#context;
    try {
      while (!this.#buffer.isEmpty) {
        const batch = await this.#files.store(this.#buffer.take());
        try {
          // not running any more in the store: it was ended elsewhere, and `endRun` will return null
          if (!(await store.append(this.#id, batch, eventLimits))) return this.#end(interrupted());
        } catch (error) {
          this.#buffer.restore(batch);
          throw error;
        }
        bus.wake(this.#id);
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      // in the same step as the last check of the buffer, or an event in between would wait for the next one
      this.#flushing = undefined;
    }
  }
}

const refuseBatch: Agent = () => {
  const sentence = "A worker that is not `latentkit worker` has claimed the batch's run: it renders no batches.";
  throw new LatentkitError("config.invalid", sentence);
};

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
