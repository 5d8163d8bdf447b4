import type { Timer } from "../../clock.js";
import type { Limits } from "../../hook-config.js";
import type { Room } from "../../store/admission.js";
import type { RunCounts } from "../../store/queue-store.js";
import { isShared, type NewRun, type SharedStore, storeTime } from "../../store/store.js";
import { expired, type Outcome, pastDeadline } from "../outcome.js";
import { type RunContext, StoreTurns, storeEnding } from "../run-context.js";
import { type ClaimOptions, Claims } from "./claims.js";

/** Interval of looks at a shared store, whose hints may be lost. */
const POLL_MS = 500;
/** Looks between two of those at the clock and at runs that have waited too long. */
const SLOW_POLLS = 4;
/** Rest after a count, as a multiple of how long it took: one of 100,000 runs takes the server some 20 ms. */
const COUNT_REST = 20;
/** Runs that end in one turn of the event loop, each with a commit. */
const MOST_EXPIRED = 20;
/** Runs beyond this position are not counted. */
const MOST_POSITIONS = 10_000;
const RETRY_MS = 1000;

export interface QueueOptions {
  readonly limits: Pick<Limits, "running_per_session" | "queued" | "queued_per_session" | "queue_seconds">;
  /** The worker of this process; absent: others run the runs. */
  readonly worker?: Omit<ClaimOptions, "claimed" | "requeued" | "looked">;
}

// decisions: The store is the queue
/**
 * The queue of one service: admits runs, lets the worker of its process claim them, cancels them, and ends those that
 * wait too long. The store has the order. Where other processes share it, this one wakes the readers of what they change.
 */
export class Queue {
  readonly #context: RunContext;
  readonly #limits: QueueOptions["limits"];
  readonly #shared: SharedStore | undefined;
  readonly #claims: Claims | undefined;
  readonly #turns: StoreTurns;
  #counts: RunCounts = { queued: 0, running: 0, newest: 0 };
  /** The counted runs and what this process has made of them since. */
  #queued = 0;
  /** Sequence numbers of the runs that were created here since the last count began. */
  #created: number[] = [];
  /** Runs that are being created. */
  #reserved = 0;
  /** Runs that were created since the last look for runs to claim. */
  #unclaimed = 0;
  #isPaused = false;
  #pausing = Promise.resolve();
  /** Time since which the oldest run that never started could, steady ms. */
  #oldestReady = Number.POSITIVE_INFINITY;
  #alarm: Timer | undefined;
  #alarmMark = Number.POSITIVE_INFINITY;
  #poll: Timer | undefined;
  #polling: Promise<void> | undefined;
  #polls = 0;
  #countFrom = 0;
  #revisions: ReadonlyMap<string, string> = new Map();
  #endListening: (() => void) | undefined;
  #isStopped = false;

  constructor(context: RunContext, { limits, worker }: QueueOptions) {
    this.#context = context;
    this.#limits = limits;
    this.#turns = new StoreTurns(context);
    this.#shared = isShared(context.store) ? context.store : undefined;
    const claimed: ClaimOptions["claimed"] = (count) => {
      this.#queued -= count;
      this.#rest();
    };
    const requeued: ClaimOptions["requeued"] = (dueMark) => {
      this.#queued += 1;
      this.#wakeAt(dueMark);
    };
    const looked = () => {
      this.#unclaimed = 0;
      if (this.#shared === undefined && this.#queued > 0) void this.#turns.try(() => this.#readOldest());
    };
    this.#claims = worker && new Claims(context, { ...worker, claimed, requeued, looked });
  }

  async open(): Promise<void> {
    const { store, clock, mark } = this.#context;
    const lastMark = await store.openQueue(this.#limits.running_per_session);
    if (this.#shared !== undefined) mark.set(await storeTime(this.#shared, clock));
    // the wall clock may have been set back since: a run that ends now must not look older than one that ended before
    else mark.notBefore(lastMark);
    this.#isPaused = await store.isPaused();
    await this.#claims?.open();
    await this.#count();
    await this.#look();
    this.#endListening ??= this.#shared?.listen((id) => {
      if (id === null) void this.#pollNow();
      else this.#context.bus.wake(id);
    });
    this.#pollLater();
    this.#claims?.claimSoon();
  }

  get queued(): number {
    return Math.max(0, this.#queued);
  }

  get running(): number {
    return this.#shared === undefined ? (this.#claims?.running ?? 0) : this.#counts.running;
  }

  /** Time for which the oldest queued run has waited, in ms, as far as it is known; 0 where none waits. */
  get waitedMs(): number {
    return this.queued === 0 ? 0 : Math.max(0, this.#context.mark() - this.#oldestReady);
  }

  /** Whether no run starts. */
  isPaused(): Promise<boolean> {
    return this.#context.store.isPaused();
  }

  // One row of the store, which every claim reads: a lost message leaves nothing running.
  /** Lets no run start, or lets them start again; other processes learn of it with their next claim, a second later at most. */
  setPaused(isPaused: boolean): Promise<void> {
    // one after the other: two at once could leave the store and this queue apart
    const turn = this.#pausing.then(async () => {
      await this.#context.store.setPaused(isPaused);
      this.#isPaused = isPaused;
      this.#claims?.claimSoon();
    });
    this.#pausing = turn.catch(() => undefined);
    return turn;
  }

  /** Position of a queued run, 1 for the next. */
  async positionOf(id: string): Promise<number> {
    return this.#claims?.holds(id) ? 1 : this.#context.store.positionOf(id, MOST_POSITIONS);
  }

  /** Creates runs, with the room that the queue has for them. */
  async admit<T>(count: number, create: (room: Room) => Promise<T>): Promise<T> {
    const { running_per_session, queued_per_session, queued } = this.#limits;
    const room: Room = {
      perSession: running_per_session,
      queuedPerSession: queued_per_session,
      queued: queued - (this.queued - this.#unclaimed),
      freeSlots: this.#isPaused ? 0 : (this.#claims?.free ?? 0),
      unclaimed: this.#unclaimed + this.#reserved,
      isShared: this.#shared !== undefined,
    };
    this.#reserved += count;
    try {
      return await create(room);
    } finally {
      this.#reserved -= count;
    }
  }

  /** Has a run claimed that was created. */
  created({ createdMark, terms: { dueMark, deadlineMark } }: NewRun, seq: number): void {
    if (this.#shared !== undefined) this.#created.push(seq);
    this.#queued += 1;
    if (dueMark === null && this.#claims !== undefined) this.#unclaimed += 1;
    const readyMark = Math.max(createdMark, dueMark ?? 0);
    this.#oldestReady = this.#queued === 1 ? readyMark : Math.min(this.#oldestReady, readyMark);
    const lastMark = readyMark + this.#limits.queue_seconds * 1000;
    this.#wakeAt(Math.min(dueMark ?? lastMark, deadlineMark ?? lastMark, lastMark));
    this.#claims?.claimSoon();
  }

  /** Ends a queued or running run, `outcome` being a queued one's; any other stays as it is. Fails with store_unavailable. */
  async cancel(id: string, outcome: Outcome): Promise<void> {
    const isEnded = (await this.#claims?.cancel(id)) ?? false;
    if (!isEnded) await this.#end(id, outcome, this.#shared === undefined ? ["queued"] : ["queued", "running"]);
  }

  /** Fails a running run of this process whose agent threw outside its promise. */
  fail(id: string, thrown: unknown): void {
    this.#claims?.fail(id, thrown);
  }

  /** Starts nothing more, and lets the running runs of this process end for `seconds`; then it gives them up. */
  async drain(seconds: number): Promise<void> {
    this.#isStopped = true;
    this.#alarm?.cancel();
    this.#poll?.cancel();
    await this.#claims?.drain(seconds);
    this.#endListening?.();
    await this.#polling;
  }

  async #end(id: string, outcome: Outcome, from: ("queued" | "running")[] = ["queued"]): Promise<void> {
    if (!(await storeEnding(this.#context, id, from, outcome))) return;
    this.#queued -= 1;
    this.#rest();
    this.#context.observer.finished?.({ id, state: outcome.state, ranMs: null });
    this.#claims?.claimSoon();
  }

  /** Looks for runs that have waited long enough or too long, at this mark at the latest. */
  #wakeAt(mark: number): void {
    if (this.#isStopped || mark >= this.#alarmMark) return;
    this.#alarm?.cancel();
    this.#alarmMark = mark;
    this.#alarm = this.#context.clock.setTimer(Math.max(0, mark - this.#context.mark()), () => void this.#ring());
  }

  /** Cancels the next look if nothing waits. */
  #rest(): void {
    if (this.#shared !== undefined || this.#queued > 0) return;
    this.#alarm?.cancel();
    this.#alarmMark = Number.POSITIVE_INFINITY;
  }

  async #ring(): Promise<void> {
    this.#alarmMark = Number.POSITIVE_INFINITY;
    const hasLooked = await this.#turns.try(() => this.#look());
    if (!hasLooked) this.#wakeAt(this.#context.mark() + RETRY_MS);
    this.#claims?.claimSoon();
  }

  /** Ends runs that have waited too long, and sets the time of the next look. */
  async #look(): Promise<true> {
    const { store } = this.#context;
    const queueMs = this.#limits.queue_seconds * 1000;
    for (const { id, deadlineMark } of await store.pastDeadline(this.#context.mark(), MOST_EXPIRED)) {
      await this.#end(id, pastDeadline("expired", deadlineMark));
    }
    for (const id of await store.overdue(this.#context.mark() - queueMs, MOST_EXPIRED)) {
      await this.#end(id, expired(this.#limits.queue_seconds));
    }
    const { due, deadline, ready } = await store.nextMarks(this.#context.mark());
    const none = Number.POSITIVE_INFINITY;
    this.#oldestReady = ready ?? none;
    this.#wakeAt(Math.min(due ?? none, deadline ?? none, (ready ?? none) + queueMs));
    return true;
  }

  /** Costs nothing in a store that has its queue in this process. */
  async #readOldest(): Promise<void> {
    const { ready } = await this.#context.store.nextMarks(this.#context.mark());
    this.#oldestReady = ready ?? Number.POSITIVE_INFINITY;
  }

  #pollLater(): void {
    if (this.#isStopped || this.#shared === undefined) return;
    this.#poll?.cancel();
    this.#poll = this.#context.clock.setTimer(POLL_MS, async () => {
      await this.#pollNow();
      this.#pollLater();
    });
  }

  #pollNow(): Promise<void> {
    this.#polling ??= this.#turns
      .try(() => this.#pollShared(this.#shared!))
      .finally(() => {
        this.#polling = undefined;
      });
    return this.#polling;
  }

  async #pollShared(store: SharedStore): Promise<void> {
    const { bus, clock, mark } = this.#context;
    const revisions = await store.revisions(bus.ids);
    for (const [id, revision] of revisions) if (this.#revisions.get(id) !== revision) bus.wake(id);
    // one that was removed: its readers learn it when they read
    for (const id of this.#revisions.keys()) if (!revisions.has(id)) bus.wake(id);
    this.#revisions = revisions;
    if (clock.monotonic() >= this.#countFrom) await this.#count();
    if (this.#polls++ % SLOW_POLLS !== 0) return;
    mark.notBefore(await storeTime(store, clock));
    this.#isPaused = await store.isPaused();
    await this.#look();
  }

  async #count(): Promise<void> {
    const { store, clock } = this.#context;
    const started = clock.monotonic();
    this.#created = [];
    const most = this.#shared === undefined ? Number.MAX_SAFE_INTEGER : this.#limits.queued + 1;
    this.#counts = await store.countRuns(most);
    this.#queued = this.#counts.queued + this.#created.filter((seq) => seq > this.#counts.newest).length;
    const ended = clock.monotonic();
    this.#countFrom = ended + COUNT_REST * (ended - started);
  }
}
