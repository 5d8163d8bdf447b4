import type { Timer } from "../clock.js";
import { HookError } from "../hook-error.js";
import type { EventBatch } from "../store/store.js";
import type { Limits } from "../types.js";
import { expired, interrupted, type Outcome } from "./outcome.js";
import { type Engine, RunTask } from "./run-task.js";

const RETRY_MS = 1000;
const NO_EVENTS: EventBatch = { skip: 0, events: [], files: [] };

/** A run that waits for a slot. */
export interface Waiting {
  readonly id: string;
  /** Order of creation decides. */
  readonly seq: number;
  readonly sessionKey: string;
  /** Monotonic ms since which it waits. */
  readonly since: number;
}

interface Entry extends Waiting {
  readonly expiry: Timer;
}

/** A place in the queue between admission and commit. */
export interface Place {
  release(): void;
}

type QueueLimits = Pick<Limits, "running" | "running_per_session" | "queued" | "queued_per_session" | "queue_seconds">;

/** First in, first out within a session; sessions share the slots in order of creation. */
export class Scheduler {
  readonly #engine: Engine;
  readonly #limits: QueueLimits;
  readonly #queue: Entry[] = [];
  readonly #active = new Map<string, RunTask>();
  readonly #running = new Map<string, number>();
  /** Queued runs and reserved places by session. */
  readonly #waiting = new Map<string, number>();
  #reserved = 0;
  #isKicked = false;
  #isStopped = false;
  #pause: Timer | undefined;
  #whenIdle: (() => void)[] = [];

  constructor(engine: Engine, limits: QueueLimits) {
    this.#engine = engine;
    this.#limits = limits;
  }

  get queued(): number {
    return this.#queue.length;
  }

  get running(): number {
    return this.#active.size;
  }

  /** Place of a queued run, 1 for the next: before the first start that is under way, behind all where it is new. */
  positionOf(id: string): number {
    if (this.#active.has(id)) return 1;
    const at = this.#queue.findIndex((entry) => entry.id === id);
    return (at < 0 ? this.#queue.length : at) + 1;
  }

  /** Takes a place for a run to be created. Fails with queue_full. */
  reserve(sessionKey: string): Place {
    const { running, running_per_session, queued, queued_per_session } = this.#limits;
    // whoever can leave the queue leaves it before it is counted
    this.#startAll();
    const freeSlots = Math.max(0, running - this.#active.size);
    const freeInSession = Math.min(freeSlots, running_per_session - (this.#running.get(sessionKey) ?? 0));
    const ahead = this.#waiting.get(sessionKey) ?? 0;
    const goesOnAtOnce = ahead < freeInSession && this.#reserved < freeSlots;
    if (!goesOnAtOnce) {
      if (ahead - Math.max(0, freeInSession) >= queued_per_session) throw new HookError("queue_full", full("session"));
      if (this.#queue.length + this.#reserved - Math.min(freeSlots, this.#reserved) >= queued) {
        throw new HookError("queue_full", full("service"));
      }
    }
    this.#reserved += 1;
    count(this.#waiting, sessionKey, 1);
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#reserved -= 1;
      count(this.#waiting, sessionKey, -1);
    };
    return { release };
  }

  /** Puts a committed run in the queue. */
  enqueue(run: Waiting): void {
    this.#insert(run, 0);
  }

  #insert(run: Waiting, leastMs: number): void {
    const limitMs = this.#limits.queue_seconds * 1000;
    const left = limitMs - (this.#engine.clock.monotonic() - run.since);
    const expiry = this.#engine.clock.setTimer(Math.max(left, leastMs), () => void this.#expire(run.id));
    const later = this.#queue.findLastIndex(({ seq }) => seq < run.seq);
    this.#queue.splice(later + 1, 0, { ...run, expiry });
    count(this.#waiting, run.sessionKey, 1);
    this.#kick();
  }

  /** True where the run was here, queued or running, and has been ended. Fails with store_unavailable. */
  async cancel(id: string, ending: Outcome): Promise<boolean> {
    const task = this.#active.get(id);
    if (task === undefined) return this.#endQueued(id, ending);
    task.cancel();
    const error = await task.whenStored();
    if (error !== null) throw error;
    return true;
  }

  /** Ends a running run whose agent threw where nobody awaits it. */
  fail(id: string, thrown: unknown): void {
    this.#active.get(id)?.fail(thrown);
  }

  /** Starts nothing more, lets the running ones end for `seconds`, then interrupts them. */
  async drain(seconds: number): Promise<void> {
    this.#isStopped = true;
    this.#pause?.cancel();
    for (const { expiry } of this.#queue) expiry.cancel();
    const isTimeUp = await this.#idleWithin(seconds);
    if (!isTimeUp) return;
    for (const task of this.#active.values()) task.interrupt();
    await Promise.all(
      [...this.#active.values()].map(async (task) => {
        if ((await task.whenStored()) !== null) task.giveUp();
      }),
    );
    await this.#idle();
  }

  /** Every run that can start does, in the next turn of the event loop: answers go out first. */
  #kick(): void {
    if (this.#isKicked) return;
    this.#isKicked = true;
    setImmediate(() => {
      this.#isKicked = false;
      this.#startAll();
    });
  }

  #startAll(): void {
    if (this.#isStopped || this.#pause !== undefined) return;
    const { running, running_per_session } = this.#limits;
    for (let at = 0; at < this.#queue.length && this.#active.size < running; ) {
      const entry = this.#queue[at]!;
      if ((this.#running.get(entry.sessionKey) ?? 0) < running_per_session) void this.#work(this.#pull(at));
      else at += 1;
    }
  }

  async #work(entry: Entry): Promise<void> {
    const { id, sessionKey, since } = entry;
    const task = new RunTask(id, this.#engine.clock.monotonic() - since, this.#engine);
    this.#active.set(id, task);
    count(this.#running, sessionKey, 1);
    try {
      await task.work();
    } catch {
      // the task has told the observer: the store could not take the start, so the run goes back to its place
      this.#retryLater(entry);
    } finally {
      this.#active.delete(id);
      count(this.#running, sessionKey, -1);
      if (this.#active.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
      this.#kick();
    }
  }

  #retryLater(entry: Entry): void {
    if (this.#isStopped) return;
    this.#insert(entry, RETRY_MS);
    this.#pause ??= this.#engine.clock.setTimer(RETRY_MS, () => {
      this.#pause = undefined;
      this.#kick();
    });
  }

  #pull(at: number): Entry {
    const [entry] = this.#queue.splice(at, 1);
    entry!.expiry.cancel();
    count(this.#waiting, entry!.sessionKey, -1);
    return entry!;
  }

  /** False where the run is not queued any more. */
  async #endQueued(id: string, { state: to, terminal, error }: Outcome): Promise<boolean> {
    const { store, clock, mark, keep, bus, observer } = this.#engine;
    const at = this.#queue.findIndex((entry) => entry.id === id);
    const entry = at < 0 ? undefined : this.#pull(at);
    try {
      const ending = { from: ["queued"] as const, to, finishedAt: clock.now(), endedMark: mark(), error, terminal };
      const row = await store.endRun(id, ending, NO_EVENTS, keep);
      if (row === null) return false;
      bus.wake(id);
      observer.finished?.({ id, state: to, ranMs: null });
      return true;
    } catch (failure) {
      if (entry !== undefined) this.#retryLater(entry);
      throw failure;
    } finally {
      this.#kick();
    }
  }

  async #expire(id: string): Promise<void> {
    try {
      await this.#endQueued(id, expired(this.#limits.queue_seconds));
    } catch (error) {
      this.#engine.observer.fault?.("store", error);
    }
  }

  /** True where the time was up first. */
  async #idleWithin(seconds: number): Promise<boolean> {
    let timer: Timer | undefined;
    const timeUp = new Promise<boolean>((resolve) => {
      timer = this.#engine.clock.setTimer(seconds * 1000, () => resolve(true), true);
    });
    const isTimeUp = await Promise.race([this.#idle().then(() => false), timeUp]);
    timer?.cancel();
    return isTimeUp;
  }

  async #idle(): Promise<void> {
    if (this.#active.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}

/** Ends in the store what a former process left running. */
export async function interruptLeftOver(
  { store, clock, mark, keep, bus, observer }: Engine,
  id: string,
): Promise<void> {
  const { state: to, terminal, error } = interrupted();
  const ending = { from: ["running"] as const, to, finishedAt: clock.now(), endedMark: mark(), error, terminal };
  if ((await store.endRun(id, ending, NO_EVENTS, keep)) === null) return;
  bus.wake(id);
  observer.finished?.({ id, state: to, ranMs: null });
}

const full = (whose: "session" | "service") => `the queue of this ${whose} is full, try again later`;

/** Sessions with nothing leave the map. */
function count(map: Map<string, number>, key: string, by: number): void {
  const value = (map.get(key) ?? 0) + by;
  if (value === 0) map.delete(key);
  else map.set(key, value);
}
