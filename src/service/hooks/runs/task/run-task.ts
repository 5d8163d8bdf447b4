import type { AgentRun } from "../../../agent/agent.js";
import { type Timer, within } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import type { RunRow, TerminalState } from "../../run.js";
import type { EventBatch, HeldRun, NextAttempt } from "../../store/queue-store.js";
import { cancelled, failed, interrupted, type Outcome, pastDeadline, returned, timedOut } from "../outcome.js";
import { type RunContext, storeEnding } from "../run-context.js";
import { AgentOutput } from "./agent-output.js";
import { EventWriter, RunFiles } from "./event-writer.js";
import { nextAttempt, storeRetry, TaskEnd } from "./task-end.js";

/** Time for which the agent of an ended run keeps its slot when it does not return. */
const ABORT_GRACE_MS = 1000;
const RETRY_MS = 1000;

/**
 * One attempt of a run that a worker holds, until its terminal event or the next attempt: exactly one, whatever the agent
 * does. Its steps, one after the other: the agent works, the end is stored, and the agent leaves. What comes from
 * outside meanwhile is decided by the table of `TaskEnd`.
 */
export class RunTask {
  readonly #id: string;
  readonly #held: HeldRun;
  readonly #waitedMs: number;
  readonly #context: RunContext;
  readonly #isReleased: () => boolean;
  readonly #end: TaskEnd;
  readonly #files: RunFiles;
  readonly #writer: EventWriter;
  readonly #output: AgentOutput;
  /** Error that the agent failed with. */
  #failure: { readonly error: unknown } | undefined;
  #storing = deferred<HookError | null>();
  /** Whether the run is queued for another attempt. */
  isRetried = false;
  #hasGivenUp = false;
  #endPause: (() => void) | undefined;

  /** While `isReleased` holds, an interrupted run does not end: it is queued again. */
  constructor(held: HeldRun, waitedMs: number, context: RunContext, isReleased: () => boolean) {
    const { id } = held.run;
    this.#id = id;
    this.#held = held;
    this.#waitedMs = waitedMs;
    this.#context = context;
    this.#isReleased = isReleased;
    const { eventLimits, observer } = context;
    this.#end = new TaskEnd(() => {
      this.#output.close();
      this.#writer.close();
    });
    this.#files = new RunFiles(id, context, this.#end.signal, (error) => this.#end.take("fileLost", failed(error)));
    // `endRun` will return null
    this.#writer = new EventWriter(held, context, this.#files, () => this.#end.take("endedElsewhere", interrupted()));
    this.#output = new AgentOutput(id, this.#writer, eventLimits.events, {
      onPreview: (png, node) => observer.previewed?.(id, png, node),
      onWarning: (message) => observer.warned?.(id, message),
    });
  }

  /** Resolves when the slot is free again, to the next attempt if one follows. */
  async work(): Promise<NextAttempt | undefined> {
    const row = this.#held.run;
    const { clock, bus, observer } = this.#context;
    bus.wake(this.#id);
    observer.started?.({ id: this.#id, waitedMs: this.#waitedMs });
    const startedAt = clock.monotonic();
    const timer = this.#limitTime(row);
    const settled = this.#end.isSettled ? Promise.resolve() : this.#callAgent(row);
    const outcome = await this.#end.outcome;
    timer.cancel();
    const end = await this.#storeEnding(outcome, row);
    if (typeof end === "string") {
      observer.finished?.({ id: this.#id, state: end, ranMs: clock.monotonic() - startedAt });
    } else if (end !== null) observer.retried?.({ id: this.#id, attempt: row.attempt });
    await within(clock, ABORT_GRACE_MS, settled);
    // an interrupted run may start again at once, in the same folder
    if (end !== null && end !== "interrupted") await this.#files.tidy(this.#attemptOf(row));
    return typeof end === "string" || end === null ? undefined : end;
  }

  cancel(): void {
    this.#end.take("cut", cancelled(this.#output.partialText));
  }

  interrupt(): void {
    this.#end.take("cut", interrupted());
  }

  fail(thrown: unknown): void {
    this.#end.take("thrown", failed(thrown));
  }

  /** Resolves to null when the terminal event is stored (here or elsewhere), to the error when the next attempt fails. */
  whenStored(): Promise<HookError | null> {
    return this.#storing.promise;
  }

  /** Stops the attempts to store the ending: the next start of the service will. */
  giveUp(): void {
    this.#hasGivenUp = true;
    this.#endPause?.();
  }

  /** Ends the run when its time is up; at once where its deadline has passed. */
  #limitTime({ timeoutSeconds, deadlineMark }: RunRow): Timer {
    const { clock, mark } = this.#context;
    const timeoutMs = timeoutSeconds * 1000;
    const deadlineMs = deadlineMark === null ? Number.POSITIVE_INFINITY : deadlineMark - mark();
    if (deadlineMs <= 0) this.#end.take("timeUp", pastDeadline("expired", deadlineMark!));
    return clock.setTimer(Math.min(timeoutMs, deadlineMs), () => {
      const isPast = deadlineMs < timeoutMs;
      this.#end.take("timeUp", isPast ? pastDeadline("timed_out", deadlineMark!) : timedOut(timeoutSeconds));
    });
  }

  /** Number of this start: a worker counts those that were lost too. */
  #attemptOf({ attempt }: RunRow): number {
    return Math.max(this.#held.token, attempt);
  }

  async #callAgent(row: RunRow): Promise<void> {
    try {
      const { current, eventLimits, batchAgent } = this.#context;
      // never the other one's: it would take a batch for a prompt
      const agent = row.origin === "batch" ? batchAgent! : this.#context.agent;
      const context = this.#output.context(this.#end.signal);
      const run = agentRun(row, this.#attemptOf(row));
      const result = await current.run(row.id, () => agent(run, context));
      this.#end.take("returned", returned(result, eventLimits.bytes));
    } catch (error) {
      if (this.#end.take("thrown", failed(error))) this.#failure = { error };
    }
  }

  /** Returns the state where this call wrote the terminal event, the next attempt where one follows, else null. */
  async #storeEnding(settled: Outcome, run: RunRow): Promise<TerminalState | NextAttempt | null> {
    for (;;) {
      let lastEvents: EventBatch | undefined;
      try {
        lastEvents = await this.#writer.takeLast();
        const end = await this.#storeOnce(settled, run, lastEvents);
        this.#storing.resolve(null);
        return end;
      } catch (error) {
        if (lastEvents !== undefined) this.#writer.restore(lastEvents);
        this.#reportFailure(error);
        if (this.#hasGivenUp) return null;
        await this.#waitForRetry();
      }
    }
  }

  async #storeOnce(settled: Outcome, run: RunRow, lastEvents: EventBatch): Promise<TerminalState | NextAttempt | null> {
    const outcome = settled.state === "succeeded" ? this.#withFiles(settled) : settled;
    const retry = nextAttempt(this.#context, run, outcome, this.#files.loss ?? this.#failure);
    const { late } = this.#end;
    if (retry !== undefined && late?.state !== "cancelled") {
      this.isRetried = await storeRetry(this.#context, this.#id, retry, lastEvents, this.#held.token);
      return this.isRetried ? retry : null;
    }
    // The first outcome of an attempt counts; a cancel after a failure ends only a run that would be tried again.
    const end = retry === undefined ? outcome : late!;
    const { token } = this.#held;
    if (end.state === "interrupted" && this.#isReleased()) {
      await this.#context.store.release(this.#id, token);
      return null;
    }
    const isStored = await storeEnding(this.#context, this.#id, ["running"], end, lastEvents, token);
    return isStored ? end.state : null;
  }

  /** Outcome of a run whose agent succeeded: without all of its files the run has not. */
  #withFiles(outcome: Outcome): Outcome {
    const { loss, hasLeftOut } = this.#files;
    if (loss !== undefined) return failed(loss.error);
    return hasLeftOut ? (this.#end.late ?? interrupted()) : outcome;
  }

  #reportFailure(error: unknown): void {
    this.#context.observer.fault?.("store", error);
    const { resolve } = this.#storing;
    this.#storing = deferred();
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
}

/** A run as its agent sees it: a field that it lacks is absent. */
function agentRun(row: RunRow, attempt: number): AgentRun {
  const { id, sessionKey, message, name, graph, traceparent, promptFacts } = row;
  const run: { -readonly [Field in keyof AgentRun]: AgentRun[Field] } = { id, sessionKey, message, name };
  if (graph !== null) run.graph = graph;
  if (traceparent !== null) run.traceparent = traceparent;
  if (promptFacts !== null) run.promptFacts = promptFacts;
  if (attempt > 1) run.attempt = attempt;
  return run;
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
