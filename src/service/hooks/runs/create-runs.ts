import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { type Clock, type SteadyWall, steadyWall, systemClock } from "../clock.js";
import { HookError } from "../hook-error.js";
import type { NewKey, Store, StoredAnswer } from "../store/store.js";
import type {
  HeartbeatResult,
  QueuedWake,
  RunOrigin,
  RunRow,
  RunStats,
  Runs,
  RunsOptions,
  Started,
  StartRequest,
  WakeRequest,
} from "../types.js";
import { EventBus } from "./event-bus.js";
import { HeartbeatInterval } from "./heartbeat.js";
import { cancelled } from "./outcome.js";
import { backlogLimits, composeMessage, TOO_MANY_PENDING } from "./pending-wakes.js";
import { Answers, checked } from "./replies.js";
import { Retention } from "./retention.js";
import { interruptLeftOver, Scheduler } from "./run-queue.js";
import { RunReader } from "./run-reader.js";
import type { Engine } from "./run-task.js";

/** Longest run time a request may ask for, unless the configuration allows more to all. */
const LONGEST_RUN_SECONDS = 3600;
/** Turns of the event loop that readers have at the end; one that is stalled does not hold the stop up. */
const LAST_TURNS = 1000;

interface Creation {
  readonly origin: RunOrigin;
  readonly sessionKey: string;
  readonly name: string | null;
  readonly timeoutSeconds: number;
  /** null: only where wakes are pending. */
  readonly message: string | null;
}

type Created = Started & { readonly wakes: number };

/** The run engine over a store: admits, queues, runs, ends and forgets runs. Begins to recover at once. */
export function createRuns(options: RunsOptions): Runs {
  return new RunEngine(options);
}

class RunEngine extends RunReader implements Runs {
  readonly #options: RunsOptions;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #engine: Engine;
  readonly #scheduler: Scheduler;
  readonly #answers: Answers;
  readonly #retention: Retention;
  readonly #heartbeat: HeartbeatInterval;
  readonly now: SteadyWall;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RunsOptions) {
    const { agent, store, limits, observer = {}, clock = systemClock } = options;
    const bus = new EventBus();
    super(store, bus);
    this.#options = options;
    this.#store = store;
    this.#clock = clock;
    this.now = steadyWall(clock);
    const retention = () => this.#retention;
    this.#engine = {
      ...{ agent, store, clock, mark: this.now, bus, current: new AsyncLocalStorage<string>() },
      keep: { events: limits.run_events, bytes: limits.run_bytes },
      observer: {
        ...{ created: observer.created?.bind(observer), started: observer.started?.bind(observer) },
        fault: observer.fault?.bind(observer),
        finished: (run) => {
          observer.finished?.(run);
          retention().count();
        },
      },
    };
    this.#scheduler = new Scheduler(this.#engine, limits);
    this.#answers = new Answers(store, this.now, limits.idempotency_hours);
    this.#retention = new Retention(this.#engine, limits);
    this.#heartbeat = new HeartbeatInterval(clock, options.heartbeatSeconds ?? 0, () => this.#beat());
    this.open().catch((error: unknown) => this.#fault("recovery", error));
  }

  get closing(): boolean {
    return this.#closing !== undefined;
  }

  open(): Promise<void> {
    this.#opening ??= this.#recover().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async start(request: StartRequest): Promise<Started> {
    await this.#enter();
    const { origin, sessionKey, message, name = null, idempotency } = request;
    const creation = { origin, sessionKey, name, message, timeoutSeconds: this.#runSeconds(request.timeoutSeconds) };
    return this.#answers.once(idempotency, replayedRun, async (key) => {
      request.admit?.();
      const started = await this.#create(creation, key);
      if (started === null) throw new HookError("internal");
      const { wakes: _, ...rest } = started;
      return rest;
    });
  }

  async queueWake(request: WakeRequest): Promise<QueuedWake> {
    await this.#enter();
    const { sessionKey, text, idempotency } = request;
    return this.#answers.once(idempotency, replayedWake, async (key) => {
      const added = await this.#store.addWake({ sessionKey, text, limits: backlogLimits(this.#options.limits) }, key);
      if (added.kind === "answered") return replayedWake(checked(added.stored, key!));
      if (added.kind === "full") throw new HookError("queue_full", TOO_MANY_PENDING[added.whose]);
      const { chatId, eventId, pending } = added;
      return { sessionKey, chatId, eventId, pending, replayed: false };
    });
  }

  async heartbeat({ sessionKey }: { sessionKey?: string } = {}): Promise<HeartbeatResult> {
    await this.#enter();
    const runs: HeartbeatResult["runs"][number][] = [];
    const skipped: string[] = [];
    const sessions = sessionKey === undefined ? await this.#store.pendingSessions() : [sessionKey];
    for (const session of sessions) {
      try {
        const started = await this.#create(this.#heartbeatOf(session));
        if (started !== null) runs.push({ runId: started.runId, sessionKey: session, events: started.wakes });
      } catch (error) {
        if (!(error instanceof HookError && error.kind === "queue_full")) throw error;
        skipped.push(session);
      }
    }
    return { runs, skipped };
  }

  async cancel(runId: string): Promise<RunRow> {
    await this.get(runId);
    await this.#scheduler.cancel(runId, cancelled(null));
    return this.get(runId);
  }

  protected positionOf(runId: string): number {
    return this.#scheduler.positionOf(runId);
  }

  get current(): string | undefined {
    return this.#engine.current.getStore();
  }

  fail(runId: string, thrown: unknown): void {
    this.#scheduler.fail(runId, thrown);
  }

  async ping(): Promise<void> {
    await this.open();
    await this.#store.ping();
  }

  stats(): RunStats {
    const { queued, running } = this.#scheduler;
    return { queued, running, followed: this.#engine.bus.runs };
  }

  close(drainSeconds: number = this.#options.limits.drain_seconds): Promise<void> {
    this.#closing ??= this.#close(drainSeconds);
    return this.#closing;
  }

  async #close(drainSeconds: number): Promise<void> {
    this.#heartbeat.stop();
    await this.#scheduler.drain(drainSeconds);
    await this.#retention.stop();
    // readers that are behind read the last events before the store closes
    for (let turn = 0; turn === 0 || (turn < LAST_TURNS && !this.#engine.bus.isQuiet); turn++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#engine.bus.close();
    await this.#store.close();
    // an enabled one costs every promise of the process
    this.#engine.current.disable();
  }

  async #recover(): Promise<void> {
    const { queued, running, lastMark } = await this.#store.leftOver();
    // the wall clock may have been set back since: what ends now must not look older than what ended before
    this.now.notBefore(lastMark);
    const isAgain = this.#options.onRestart === "requeue";
    for (const { id } of running) {
      if (isAgain) await this.#store.requeueRun(id);
      else await interruptLeftOver(this.#engine, id);
    }
    const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()];
    for (const run of queued) {
      // the monotonic clock of the former process is gone: the wall clock tells how long the run has waited
      this.#scheduler.enqueue({ ...run, since: monotonic - Math.max(0, now - run.createdAt) });
    }
    if (isAgain) for (const run of running) this.#scheduler.enqueue({ ...run, since: monotonic });
    this.#retention.start();
    this.#heartbeat.start();
  }

  /** Open, and not about to close. */
  async #enter(): Promise<void> {
    await this.open();
    if (this.closing) throw new HookError("shutting_down");
  }

  /** Null where there was nothing to run. */
  async #create(creation: Creation, key?: NewKey): Promise<Created | null> {
    const place = this.#scheduler.reserve(creation.sessionKey);
    try {
      const id = this.#options.newId?.() ?? randomUUID();
      const { message, ...rest } = creation;
      const compose = (pending: readonly string[]) => composeMessage(pending, message);
      // a run keeps its message for as long as it is kept: no more than a request may bring
      const maxWakeBytes = this.#options.limits.body_bytes;
      const createdMark = this.now();
      const run = { ...rest, id, createdAt: this.#clock.now(), createdMark, maxWakeBytes, compose };
      const result = await this.#store.createRun(run, key);
      if (result.kind === "empty") return null;
      if (result.kind === "answered") return { ...replayedRun(checked(result.stored, key!)), wakes: 0 };
      const { seq, sessionKey, createdAt } = result.run;
      place.release();
      this.#engine.observer.created?.({ id, origin: creation.origin });
      this.#scheduler.enqueue({ id, seq, sessionKey, since: this.#clock.monotonic() });
      return { runId: id, sessionKey, createdAt, createdMark, replayed: false, wakes: result.wakes };
    } finally {
      place.release();
    }
  }

  #heartbeatOf(sessionKey: string): Creation {
    return { origin: "heartbeat", sessionKey, name: null, message: null, timeoutSeconds: this.#runSeconds(undefined) };
  }

  async #beat(): Promise<void> {
    try {
      await this.heartbeat();
    } catch (error) {
      this.#fault("heartbeat", error);
    }
  }

  #runSeconds(asked: number | undefined): number {
    const usual = this.#options.limits.run_seconds;
    if (asked === undefined) return usual;
    const most = Math.max(usual, LONGEST_RUN_SECONDS);
    if (asked > 0 && asked <= most) return asked;
    throw new HookError("invalid_request", `timeoutSeconds: expected a number above 0, at most ${most}`);
  }

  #fault(what: string, error: unknown): void {
    this.#engine.observer.fault?.(what, error);
  }
}

function replayedRun({ answer }: StoredAnswer): Started {
  if (!("run" in answer)) throw new HookError("idempotency_mismatch");
  return { createdMark: answer.run.createdAt, ...answer.run, replayed: true };
}

function replayedWake({ answer }: StoredAnswer): QueuedWake {
  if (!("wake" in answer)) throw new HookError("idempotency_mismatch");
  return { ...answer.wake, replayed: true };
}
