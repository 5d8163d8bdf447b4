import type { Timer } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import { expired, type Outcome, pastDeadline } from "../outcome.js";
import { type RunContext, storeEnding } from "../run-context.js";
import { RunTask } from "../task/run-task.js";
import { full, type Queue, type QueuedRun, type QueueLimits, type Reservation } from "./queue.js";
import { WaitingRuns } from "./waiting-runs.js";

const RETRY_MS = 1000;

interface Entry extends QueuedRun {
  readonly timers: readonly Timer[];
}

/** Starts runs as slots become free: first in, first out within a session, by priority and age across sessions. */
export class RunQueue implements Queue {
  readonly #context: RunContext;
  readonly #limits: QueueLimits;
  readonly #waiting = new WaitingRuns<Entry>();
  readonly #active = new Map<string, RunTask>();
  /** Ends of the work on active runs. */
  readonly #slots = new Map<string, Promise<void>>();
  readonly #running = new Map<string, number>();
  readonly #reservations = new Map<string, number>();
  #reserved = 0;
  #isKicked = false;
  #isStopped = false;
  #isPaused = false;
  #pausing = Promise.resolve();
  /** Time after a failure of the store. */
  #rest: Timer | undefined;
  #whenIdle: (() => void)[] = [];

  constructor(context: RunContext, limits: QueueLimits) {
    this.#context = context;
    this.#limits = limits;
  }

  get queued(): number {
    return this.#waiting.size;
  }

  get running(): number {
    return this.#active.size;
  }

  get waitedMs(): number {
    const now = this.#context.clock.monotonic();
    let longest = 0;
    for (const { since } of this.#waiting) longest = Math.max(longest, now - since);
    return longest;
  }

  isPaused(): boolean {
    return this.#isPaused;
  }

  // decision 300
  setPaused(isPaused: boolean): Promise<void> {
    // one after the other: two at once could leave the store and this queue apart
    const turn = this.#pausing.then(async () => {
      await this.#context.store.setPaused(isPaused);
      this.#isPaused = isPaused;
      this.#kick();
    });
    this.#pausing = turn.catch(() => undefined);
    return turn;
  }

  /** Reads whether an earlier process left the queue paused; before the first run is in it. */
  async recover(): Promise<void> {
    this.#isPaused = await this.#context.store.isPaused();
  }

  /** Position of a queued run, 1 for the next: 1 while its start is under way, behind all before it is in the queue. */
  positionOf(id: string): number {
    return this.#active.has(id) ? 1 : this.#waiting.positionOf(id);
  }

  reserve(sessionKey: string, isDelayed: boolean): Reservation {
    const { running, running_per_session, queued, queued_per_session } = this.#limits;
    // runs that can start leave the queue before it is counted
    this.#startAll();
    const freeSlots = this.#isPaused ? 0 : Math.max(0, running - this.#active.size);
    const freeInSession = Math.min(freeSlots, running_per_session - (this.#running.get(sessionKey) ?? 0));
    const ahead = this.#waiting.countOf(sessionKey) + (this.#reservations.get(sessionKey) ?? 0);
    const canStartAtOnce = !isDelayed && ahead < freeInSession && this.#reserved < freeSlots;
    if (!canStartAtOnce) {
      if (ahead - Math.max(0, freeInSession) >= queued_per_session) throw new HookError("queue_full", full("session"));
      if (this.#waiting.size + this.#reserved - Math.min(freeSlots, this.#reserved) >= queued) {
        throw new HookError("queue_full", full("service"));
      }
    }
    this.#reserved += 1;
    count(this.#reservations, sessionKey, 1);
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#reserved -= 1;
      count(this.#reservations, sessionKey, -1);
    };
    return { release };
  }

  enqueue(run: QueuedRun): void {
    this.#insert(run, 0);
  }

  #insert(run: QueuedRun, leastMs: number): void {
    const { clock, mark } = this.#context;
    const [now, nowMark] = [clock.monotonic(), mark()];
    const delayMs = Math.max(0, (run.dueMark ?? nowMark) - nowMark);
    const since = Math.max(run.since, now + (run.dueMark ?? Number.NEGATIVE_INFINITY) - nowMark);
    const waitMs = this.#limits.queue_seconds * 1000 - (now - since);
    const deadlineMs = (run.deadlineMark ?? Number.POSITIVE_INFINITY) - nowMark;
    const outcome = () =>
      deadlineMs <= waitMs ? pastDeadline("expired", run.deadlineMark!) : expired(this.#limits.queue_seconds);
    const lastMs = Math.max(Math.min(waitMs, deadlineMs), leastMs);
    const timers = [clock.setTimer(lastMs, () => void this.#expire(run.id, outcome()))];
    if (delayMs > 0) timers.push(clock.setTimer(delayMs, () => this.#endDelay(run.id)));
    // one whose deadline has passed does not start any more
    const { id, seq, sessionKey, priority, dueMark, deadlineMark } = run;
    const entry = { id, seq, sessionKey, priority, dueMark, deadlineMark, since, timers };
    this.#waiting.add(entry, delayMs > 0 || deadlineMs <= 0);
    this.#kick();
  }

  #endDelay(id: string): void {
    this.#waiting.endDelay(id);
    this.#kick();
  }

  async cancel(id: string, outcome: Outcome): Promise<void> {
    const task = this.#active.get(id);
    if (task === undefined) return this.#endQueued(id, outcome);
    task.cancel();
    const error = await task.whenStored();
    if (error !== null) throw error;
    if (!task.isRetried) return;
    // once its slot is free, its next attempt is in the queue
    await this.#slots.get(id);
    await this.#endQueued(id, outcome);
  }

  fail(id: string, thrown: unknown): void {
    this.#active.get(id)?.fail(thrown);
  }

  async drain(seconds: number): Promise<void> {
    this.#isStopped = true;
    this.#rest?.cancel();
    for (const run of this.#waiting) cancelTimers(run);
    if (await this.#idleWithin(seconds)) return;
    for (const task of this.#active.values()) task.interrupt();
    await Promise.all(
      [...this.#active.values()].map(async (task) => {
        if ((await task.whenStored()) !== null) task.giveUp();
      }),
    );
    await this.#idle();
  }

  /** Starts every run that can start, in the next turn of the event loop: responses go out first. */
  #kick(): void {
    if (this.#isKicked) return;
    this.#isKicked = true;
    setImmediate(() => {
      this.#isKicked = false;
      this.#startAll();
    });
  }

  #startAll(): void {
    if (this.#isStopped || this.#isPaused || this.#rest !== undefined) return;
    const { running, running_per_session } = this.#limits;
    const isFree = (session: string) => (this.#running.get(session) ?? 0) < running_per_session;
    while (this.#active.size < running) {
      const entry = this.#waiting.takeNext(isFree);
      if (entry === undefined) return;
      cancelTimers(entry);
      this.#slots.set(entry.id, this.#work(entry));
    }
  }

  async #work(entry: Entry): Promise<void> {
    const { id, sessionKey, since } = entry;
    const task = new RunTask(id, this.#context.clock.monotonic() - since, this.#context);
    this.#active.set(id, task);
    count(this.#running, sessionKey, 1);
    try {
      const retry = await task.work();
      if (retry !== undefined && !this.#isStopped) this.#insert({ ...entry, ...retry }, 0);
    } catch {
      // the task has reported it: the store could not take the start, so the run goes back to its position
      this.#retryLater(entry);
    } finally {
      this.#active.delete(id);
      this.#slots.delete(id);
      count(this.#running, sessionKey, -1);
      if (this.#active.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
      this.#kick();
    }
  }

  #retryLater(entry: Entry): void {
    if (this.#isStopped) return;
    this.#insert(entry, RETRY_MS);
    this.#rest ??= this.#context.clock.setTimer(RETRY_MS, () => {
      this.#rest = undefined;
      this.#kick();
    });
  }

  async #endQueued(id: string, outcome: Outcome): Promise<void> {
    const entry = this.#waiting.take(id);
    if (entry !== undefined) cancelTimers(entry);
    try {
      const isStored = await storeEnding(this.#context, id, ["queued"], outcome);
      if (isStored) this.#context.observer.finished?.({ id, state: outcome.state, ranMs: null });
    } catch (error) {
      if (entry !== undefined) this.#retryLater(entry);
      throw error;
    } finally {
      this.#kick();
    }
  }

  async #expire(id: string, outcome: Outcome): Promise<void> {
    try {
      await this.#endQueued(id, outcome);
    } catch (error) {
      this.#context.observer.fault?.("store", error);
    }
  }

  /** Returns false where the time is up first. */
  async #idleWithin(seconds: number): Promise<boolean> {
    let timer: Timer | undefined;
    const timeUp = new Promise<boolean>((resolve) => {
      timer = this.#context.clock.setTimer(seconds * 1000, () => resolve(false), true);
    });
    const isIdle = await Promise.race([this.#idle().then(() => true), timeUp]);
    timer?.cancel();
    return isIdle;
  }

  async #idle(): Promise<void> {
    if (this.#active.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}

function cancelTimers({ timers }: Entry): void {
  for (const timer of timers) timer.cancel();
}

/** Adds to a count; a count of 0 leaves the map. */
function count(map: Map<string, number>, key: string, by: number): void {
  const value = (map.get(key) ?? 0) + by;
  if (value === 0) map.delete(key);
  else map.set(key, value);
}
