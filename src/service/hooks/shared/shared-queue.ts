import type { SteadyWall, Timer } from "../clock.js";
import { HookError } from "../hook-error.js";
import { expired, type Outcome, pastDeadline } from "../runs/outcome.js";
import { full, type Queue, type QueuedRun, type QueueLimits, type Reservation } from "../runs/queue/queue.js";
import { type RunContext, storeEnding } from "../runs/run-context.js";
import type { RunCounts, SharedStore } from "../store/leases.js";
import { joinStore, storeTime } from "./store-time.js";

/** Interval of looks at the store, whose hints may be lost. */
const POLL_MS = 500;
/** Looks between two of those at the clock and at runs that have waited too long. */
const SLOW_POLLS = 4;
const MOST_EXPIRED = 100;
/** A count of 100,000 runs takes some 20 ms of the server: time between two, in times that one took. */
const COUNT_REST = 20;
/** Runs beyond this position are not counted. */
const MOST_POSITIONS = 10_000;

/**
 * The queue of a front end: the store's, whose runs the workers start. Admits runs, wakes the readers of runs that have
 * changed anywhere, and ends runs that have waited too long.
 */
export class SharedQueue implements Queue {
  readonly #context: RunContext;
  readonly #store: SharedStore;
  readonly #limits: QueueLimits;
  readonly #now: SteadyWall;
  #counts: RunCounts = { queued: 0, running: 0, newest: 0, oldestQueuedAt: null };
  #reserved = 0;
  /** Sequence numbers of the runs that were created here since the counts were read. */
  #created: number[] = [];
  #revisions: ReadonlyMap<string, string> = new Map();
  #polls = 0;
  #countFrom = 0;
  #timer: Timer | undefined;
  #polling: Promise<void> | undefined;
  #endListening: (() => void) | undefined;
  #isFailing = false;
  #isStopped = false;

  constructor(context: RunContext, store: SharedStore, limits: QueueLimits, now: SteadyWall) {
    this.#context = context;
    this.#store = store;
    this.#limits = limits;
    this.#now = now;
  }

  async open(): Promise<void> {
    await joinStore(this.#store, this.#context.clock, this.#now);
    this.#endListening ??= this.#store.listen((id) => {
      if (id === null) void this.#poll();
      else this.#context.bus.wake(id);
    });
    await this.#look();
    this.#pollLater();
  }

  get queued(): number {
    return this.#counts.queued + this.#created.length;
  }

  get running(): number {
    return this.#counts.running;
  }

  /** Time for which the oldest queued run has waited, in ms, as far as the last count tells; 0 where none waits. */
  get waitedMs(): number {
    const { oldestQueuedAt } = this.#counts;
    return oldestQueuedAt === null ? 0 : Math.max(0, this.#now() - oldestQueuedAt);
  }

  get mostQueued(): number {
    return this.#limits.queued_per_session;
  }

  isPaused(): Promise<boolean> {
    return this.#store.isPaused();
  }

  /** Workers learn of it with their next claim, a second later at most. */
  setPaused(isPaused: boolean): Promise<void> {
    return this.#store.setPaused(isPaused);
  }

  positionOf(id: string): Promise<number> {
    return this.#store.positionOf(id, MOST_POSITIONS);
  }

  reserve(): Reservation {
    if (this.queued + this.#reserved >= this.#limits.queued) throw new HookError("queue_full", full("service"));
    this.#reserved += 1;
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#reserved -= 1;
    };
    return { release };
  }

  enqueue({ seq }: QueuedRun): void {
    this.#created.push(seq);
  }

  async cancel(id: string, outcome: Outcome): Promise<void> {
    await this.#end(id, ["queued", "running"], outcome);
  }

  /** Nothing runs here. */
  fail(): void {}

  async drain(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#endListening?.();
    await this.#polling;
  }

  async #end(id: string, from: ("queued" | "running")[], outcome: Outcome): Promise<void> {
    const isStored = await storeEnding(this.#context, id, from, outcome);
    if (isStored) this.#context.observer.finished?.({ id, state: outcome.state, ranMs: null });
  }

  #pollLater(): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#context.clock.setTimer(POLL_MS, async () => {
      await this.#poll();
      this.#pollLater();
    });
  }

  #poll(): Promise<void> {
    this.#polling ??= this.#tryLook().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  async #tryLook(): Promise<void> {
    try {
      await this.#look();
      this.#isFailing = false;
    } catch (error) {
      // once for each time that the store cannot be reached
      if (!this.#isFailing) this.#context.observer.fault?.("store", error);
      this.#isFailing = true;
    }
  }

  async #look(): Promise<void> {
    const { bus, clock } = this.#context;
    const revisions = await this.#store.revisions(bus.ids);
    for (const [id, revision] of revisions) if (this.#revisions.get(id) !== revision) bus.wake(id);
    // one that was removed: its readers learn it when they read
    for (const id of this.#revisions.keys()) if (!revisions.has(id)) bus.wake(id);
    this.#revisions = revisions;
    if (clock.monotonic() >= this.#countFrom) await this.#count();
    if (this.#polls++ % SLOW_POLLS !== 0) return;
    this.#now.notBefore(await storeTime(this.#store, clock));
    const { queue_seconds: seconds } = this.#limits;
    for (const id of await this.#store.overdue(this.#now() - seconds * 1000, MOST_EXPIRED)) {
      await this.#end(id, ["queued"], expired(seconds));
    }
    for (const { id, deadlineMark } of await this.#store.pastDeadline(this.#now(), MOST_EXPIRED)) {
      await this.#end(id, ["queued"], pastDeadline("expired", deadlineMark));
    }
  }

  async #count(): Promise<void> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    this.#counts = await this.#store.countRuns(this.#limits.queued + 1);
    this.#created = this.#created.filter((seq) => seq > this.#counts.newest);
    const ended = clock.monotonic();
    this.#countFrom = ended + COUNT_REST * (ended - started);
  }
}
