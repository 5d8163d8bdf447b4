import { randomUUID } from "node:crypto";
import type { SteadyWall, Timer } from "../../clock.js";
import type { HeldRun } from "../../store/queue-store.js";
import { isShared, type SharedStore, storeTime } from "../../store/store.js";
import { interrupted } from "../outcome.js";
import type { RunContext } from "../run-context.js";
import { toJsonLine } from "../safe-json.js";
import { RunTask } from "../task/run-task.js";

/** Interval of renewals, and of looks for runs, since hints may be lost. */
const BEAT_MS = 1000;
/** Least time between two claims, and between two renewals, after hints of other processes. */
const HINTED_CLAIM_MS = 25;
const HINTED_BEAT_MS = 250;
/** Looks for lost runs within one lease. */
const LOOKS_PER_LEASE = 3;
const MOST_RECOVERED = 100;
const RETRY_MS = 1000;

const STARTED = { event: "status", data: toJsonLine({ message: "The run has started.", state: "running" }) };

export interface ClaimOptions {
  /** Most runs at the same time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Fate of runs whose worker was lost, and of those that this one gives up in a shared store. */
  readonly onLoss: "requeue" | "interrupt";
  /** Reports a number of claimed runs, without those of batches, which no count of the queue has. */
  claimed?(count: number): void;
  /** Reports a run that is queued again, for a start at a mark. */
  requeued?(dueMark: number): void;
  /** Reports that every run was claimed that could be. */
  looked?(): void;
}

interface Held {
  readonly task: RunTask;
  readonly token: number;
  /** Resolves when its slot is free. */
  readonly done: Promise<void>;
}

// Claims and renewals take turns: a renewal knows every run that was claimed before it.

/** The runs that one worker holds: claims them and runs them; in a shared store, renews their leases and takes lost runs. */
export class Claims {
  readonly #id = randomUUID();
  readonly #context: RunContext;
  readonly #shared: SharedStore | undefined;
  readonly #options: ClaimOptions;
  readonly #now: SteadyWall;
  readonly #held = new Map<string, Held>();
  #turn: Promise<unknown> = Promise.resolve();
  #isClaiming = false;
  #isClaimDue = false;
  #hintedBeat: Timer | undefined;
  #hintedClaim: Timer | undefined;
  #isHintedAgain = false;
  /** Time after a failure of the store. */
  #rest: Timer | undefined;
  #beat: Timer | undefined;
  #isFailing = false;
  /** Monotonic ms before which no run counts as lost: others could not renew while the store was gone. */
  #recoverFrom = 0;
  #endListening: (() => void) | undefined;
  #isStopped = false;
  #isReleasing = false;
  #whenIdle: (() => void)[] = [];

  constructor(context: RunContext, options: ClaimOptions, now: SteadyWall) {
    this.#context = context;
    this.#shared = isShared(context.store) ? context.store : undefined;
    this.#options = options;
    this.#now = now;
  }

  /** Fails with store_unavailable. */
  async open(): Promise<void> {
    if (this.#shared === undefined) return this.#recoverAll();
    this.#now.set(await storeTime(this.#shared, this.#context.clock));
    this.#endListening ??= this.#shared.listen((id) => this.#hear(id));
    if (this.#beat === undefined) this.#beatLater();
  }

  get running(): number {
    return this.#held.size;
  }

  /** Slots that no run has. */
  get free(): number {
    return Math.max(0, this.#options.concurrency - this.#held.size);
  }

  holds(id: string): boolean {
    return this.#held.has(id);
  }

  fail(id: string, thrown: unknown): void {
    this.#held.get(id)?.task.fail(thrown);
  }

  /** Ends a run that this worker holds. Returns false if it does not hold the run, or no longer does. Fails with store_unavailable. */
  async cancel(id: string): Promise<boolean> {
    // a claim under way may have it
    await this.#turn;
    const held = this.#held.get(id);
    if (held === undefined) return false;
    held.task.cancel();
    const error = await held.task.whenStored();
    if (error !== null) throw error;
    if (!held.task.isRetried) return true;
    // once its slot is free, its next attempt is in the queue
    await held.done;
    return false;
  }

  /** Claims nothing more, lets running runs end for `seconds`, then gives them up. */
  async drain(seconds: number): Promise<void> {
    this.#isStopped = true;
    await this.#turn;
    if (!(await this.#idleWithin(seconds))) await this.#giveUpAll();
    this.#beat?.cancel();
    this.#hintedBeat?.cancel();
    this.#hintedClaim?.cancel();
    this.#rest?.cancel();
    this.#endListening?.();
    await this.#turn;
  }

  async #giveUpAll(): Promise<void> {
    this.#isReleasing = this.#shared !== undefined && this.#options.onLoss === "requeue";
    const tasks = [...this.#held.values()].map(({ task }) => task);
    for (const task of tasks) task.interrupt();
    await Promise.all(
      tasks.map(async (task) => {
        // their leases end by themselves where the store cannot be told
        if ((await task.whenStored()) !== null) task.giveUp();
      }),
    );
    await this.#idle();
  }

  /** A change of a held run may be its end by a front end; any other may be a run to claim. */
  #hear(id: string | null): void {
    if (id === null || this.#held.has(id)) this.#renewSoon();
    if (id === null || !this.#held.has(id)) this.#claimHinted();
  }

  #claimHinted(): void {
    if (this.#hintedClaim !== undefined) {
      this.#isHintedAgain = true;
      return;
    }
    this.claimSoon();
    this.#hintedClaim = this.#context.clock.setTimer(HINTED_CLAIM_MS, () => {
      this.#hintedClaim = undefined;
      if (!this.#isHintedAgain) return;
      this.#isHintedAgain = false;
      this.#claimHinted();
    });
  }

  /** Claims what can start, in the next turn of the event loop: responses go out first. */
  claimSoon(): void {
    this.#isClaimDue = true;
    if (this.#isClaiming || this.#isStopped || this.#rest !== undefined) return;
    this.#isClaiming = true;
    setImmediate(() => {
      void this.#claimAll().finally(() => {
        this.#isClaiming = false;
        if (this.#isClaimDue) this.claimSoon();
      });
    });
  }

  async #claimAll(): Promise<void> {
    while (this.#isClaimDue && !this.#isStopped) {
      this.#isClaimDue = false;
      const found = await this.#inTurn(() => this.#claim());
      if (found === undefined) return this.#claimLater();
      if (found > 0) {
        this.#isClaimDue = true;
        continue;
      }
      if (!this.#isClaimDue) this.#options.looked?.();
    }
  }

  /** Once the store may have recovered. */
  #claimLater(): void {
    this.#isClaimDue = false;
    this.#rest ??= this.#context.clock.setTimer(RETRY_MS, () => {
      this.#rest = undefined;
      this.claimSoon();
    });
  }

  /** Returns the number of claimed runs; there may be more after any. */
  async #claim(): Promise<number> {
    if (this.free === 0 || this.#isStopped) return 0;
    const { store, batchAgent, clock } = this.#context;
    const { leaseMs } = this.#options;
    const times = { leaseMs, startedAt: clock.now(), nowMark: this.#now() };
    const claim = { worker: this.#id, count: this.free, takesBatches: batchAgent !== undefined, ...times };
    const held = await store.claim({ ...claim, event: STARTED });
    this.#options.claimed?.(held.filter(({ run }) => run.origin !== "batch").length);
    for (const run of held) this.#hold(run);
    return held.length;
  }

  #hold(held: HeldRun): void {
    const isReleased = () => this.#isReleasing;
    const task = new RunTask(held, Math.max(0, this.#now() - held.readyMark), this.#context, isReleased);
    const { id } = held.run;
    // the task begins in a later turn: it may end at once
    const done = Promise.resolve().then(() => this.#work(id, task));
    this.#held.set(id, { task, token: held.token, done });
  }

  async #work(id: string, task: RunTask): Promise<void> {
    try {
      const retry = await task.work();
      if (retry !== undefined) this.#options.requeued?.(retry.dueMark);
    } catch (error) {
      this.#context.observer.fault?.("run", error);
    } finally {
      this.#held.delete(id);
      if (this.#held.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
      this.claimSoon();
    }
  }

  #renewSoon(): void {
    this.#hintedBeat ??= this.#context.clock.setTimer(HINTED_BEAT_MS, () => {
      this.#hintedBeat = undefined;
      void this.#inTurn(() => this.#renew());
    });
  }

  /** Keeps the process alive: a worker waits for runs. */
  #beatLater(): void {
    this.#beat = this.#context.clock.setTimer(
      BEAT_MS,
      async () => {
        await this.#inTurn(() => this.#renew());
        await this.#recoverLost();
        this.claimSoon();
        if (!this.#isStopped || this.#held.size > 0) this.#beatLater();
      },
      true,
    );
  }

  async #renew(): Promise<void> {
    const store = this.#shared!;
    const rows = await store.renew(this.#id, this.#options.leaseMs);
    const tokens = new Map(rows.map(({ id, token }) => [id, token]));
    // ended or taken elsewhere: its writes would be refused
    for (const [id, { task, token }] of this.#held) if (tokens.get(id) !== token) task.interrupt();
    for (const { id, token } of rows) {
      // claimed by a statement whose answer was lost
      if (this.#held.get(id)?.token !== token) await store.release(id, token);
    }
  }

  async #recoverLost(): Promise<void> {
    const { clock } = this.#context;
    if (this.#isFailing || clock.monotonic() < this.#recoverFrom) return;
    this.#recoverFrom = clock.monotonic() + this.#options.leaseMs / LOOKS_PER_LEASE;
    await this.#try(async () => {
      this.#now.notBefore(await storeTime(this.#shared!, clock));
      await this.#recover(this.#options.onLoss === "requeue" ? 1 : 0);
    });
  }

  /** Takes the runs of an earlier process, which are lost with it. */
  async #recoverAll(): Promise<void> {
    const requeues = this.#options.onLoss === "requeue" ? Number.POSITIVE_INFINITY : 0;
    while ((await this.#recover(requeues)) > 0);
  }

  /** Returns the number of recovered runs. */
  async #recover(requeues: number): Promise<number> {
    const { store, clock, mark, eventLimits: limits, receiversOf, bus, observer } = this.#context;
    const { state: to, terminal, error } = interrupted();
    const ending = { to, terminal, error, finishedAt: clock.now(), endedMark: mark(), receivers: receiversOf?.(to) };
    const lost = await store.recoverLost({ worker: this.#id, requeues, ending, limits, count: MOST_RECOVERED });
    const number = lost.requeued.length + lost.ended.length;
    for (const id of [...lost.requeued, ...lost.ended]) bus.wake(id);
    if (number > 0) observer.recovered?.(lost);
    return number;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T | undefined> {
    const turn = this.#turn.then(() => this.#try(work));
    this.#turn = turn;
    return turn;
  }

  /** Reports a failure of the store once for each time that it cannot be reached. */
  async #try<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      this.#isFailing = false;
      return result;
    } catch (error) {
      if (!this.#isFailing) this.#context.observer.fault?.("store", error);
      this.#isFailing = true;
      this.#recoverFrom = this.#context.clock.monotonic() + this.#options.leaseMs;
      return undefined;
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
    if (this.#held.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}
