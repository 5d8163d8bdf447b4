import { randomUUID } from "node:crypto";
import type { SteadyWall, Timer } from "../clock.js";
import { interrupted } from "../runs/outcome.js";
import type { RunContext } from "../runs/run-context.js";
import { toJsonLine } from "../runs/safe-json.js";
import { RunTask } from "../runs/task/run-task.js";
import type { HeldRun, SharedStore } from "../store/leases.js";
import { heldStore } from "./held-store.js";
import { joinStore, storeTime } from "./store-time.js";

/** Interval of renewals, and of looks for runs, since hints may be lost. */
const BEAT_MS = 1000;
/** Least time between a claim that found nothing and the next one, and between two renewals. */
const PAUSE_MS = 25;
const HINTED_BEAT_MS = 250;
/** Looks for lost runs within one lease. */
const LOOKS_PER_LEASE = 3;
const MOST_RECOVERED = 100;

const STARTED = { event: "status", data: toJsonLine({ message: "The run has started.", state: "running" }) };

export interface ClaimOptions {
  /** Most runs at the same time. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Fate of runs whose worker was lost, and of those that a worker gives up when it stops. */
  readonly onLoss: "requeue" | "interrupt";
  /** Reports runs that were taken from lost workers. */
  recovered?(lost: { readonly requeued: readonly string[]; readonly ended: readonly string[] }): void;
}

interface Held {
  readonly task: RunTask;
  readonly token: number;
}

// Claims and renewals take turns: a renewal knows every run that was claimed before it.

/** The runs that one worker holds: claims them, renews their leases and runs them. */
export class Claims {
  readonly #id = randomUUID();
  readonly #context: RunContext;
  readonly #store: SharedStore;
  readonly #options: ClaimOptions;
  readonly #now: SteadyWall;
  readonly #held = new Map<string, Held>();
  #turn: Promise<unknown> = Promise.resolve();
  #isClaiming = false;
  #isClaimDue = false;
  #hintedBeat: Timer | undefined;
  #beat: Timer | undefined;
  #isFailing = false;
  /** Monotonic ms before which no run counts as lost: others could not renew while the store was gone. */
  #recoverFrom = 0;
  #endListening: (() => void) | undefined;
  #isStopped = false;
  #isReleasing = false;
  #whenIdle: (() => void)[] = [];

  constructor(context: RunContext, store: SharedStore, options: ClaimOptions, now: SteadyWall) {
    this.#context = context;
    this.#store = store;
    this.#options = options;
    this.#now = now;
  }

  async open(): Promise<void> {
    await joinStore(this.#store, this.#context.clock, this.#now);
    this.#endListening = this.#store.listen((id) => this.#hear(id));
    this.#beatLater();
    this.#claimSoon();
  }

  get running(): number {
    return this.#held.size;
  }

  fail(id: string, thrown: unknown): void {
    this.#held.get(id)?.task.fail(thrown);
  }

  /** Claims nothing more, lets running runs end for `seconds`, then gives them up. */
  async drain(seconds: number): Promise<void> {
    this.#isStopped = true;
    await this.#turn;
    if (!(await this.#idleWithin(seconds))) await this.#giveUpAll();
    this.#beat?.cancel();
    this.#hintedBeat?.cancel();
    this.#endListening?.();
    await this.#turn;
  }

  async #giveUpAll(): Promise<void> {
    this.#isReleasing = this.#options.onLoss === "requeue";
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
    if (id === null || !this.#held.has(id)) this.#claimSoon();
  }

  #claimSoon(): void {
    this.#isClaimDue = true;
    if (this.#isClaiming || this.#isStopped) return;
    this.#isClaiming = true;
    void this.#claimAll().finally(() => {
      this.#isClaiming = false;
    });
  }

  async #claimAll(): Promise<void> {
    while (this.#isClaimDue && !this.#isStopped) {
      this.#isClaimDue = false;
      const hasFound = await this.#inTurn(() => this.#claim());
      if (hasFound) this.#isClaimDue = true;
      else if (this.#held.size < this.#options.concurrency) await this.#pause();
    }
  }

  /** Returns whether there may be more. */
  async #claim(): Promise<boolean> {
    const count = this.#options.concurrency - this.#held.size;
    if (count <= 0 || this.#isStopped) return false;
    const { leaseMs } = this.#options;
    const claim = { worker: this.#id, count, leaseMs, startedAt: this.#now(), event: STARTED };
    const held = await this.#store.claim(claim);
    for (const run of held) void this.#work(run);
    return held.length > 0;
  }

  async #work(held: HeldRun): Promise<void> {
    const { run, token } = held;
    const store = heldStore(this.#store, held, ({ to }) => this.#isReleasing && to === "interrupted");
    const task = new RunTask(run.id, Math.max(0, this.#now() - run.createdAt), { ...this.#context, store }, token);
    this.#held.set(run.id, { task, token });
    try {
      await task.work();
    } finally {
      this.#held.delete(run.id);
      if (this.#held.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
      this.#claimSoon();
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
        this.#claimSoon();
        if (!this.#isStopped || this.#held.size > 0) this.#beatLater();
      },
      true,
    );
  }

  async #renew(): Promise<void> {
    const { leaseMs } = this.#options;
    const rows = await this.#store.renew(this.#id, leaseMs);
    const tokens = new Map(rows.map(({ id, token }) => [id, token]));
    // ended or taken elsewhere: its writes would be refused
    for (const [id, { task, token }] of this.#held) if (tokens.get(id) !== token) task.interrupt();
    for (const { id, token } of rows) {
      // claimed by a statement whose answer was lost
      if (this.#held.get(id)?.token !== token) await this.#store.release(id, token);
    }
  }

  async #recoverLost(): Promise<void> {
    const { clock, eventLimits: limits, receiversOf } = this.#context;
    const { leaseMs, onLoss, recovered } = this.#options;
    if (this.#isFailing || clock.monotonic() < this.#recoverFrom) return;
    this.#recoverFrom = clock.monotonic() + leaseMs / LOOKS_PER_LEASE;
    await this.#try(async () => {
      this.#now.notBefore(await storeTime(this.#store, clock));
      const { state: to, terminal, error } = interrupted();
      const times = { finishedAt: this.#now(), endedMark: this.#now() };
      const ending = { to, terminal, error, ...times, receivers: receiversOf?.(to) };
      const requeues = onLoss === "requeue" ? 1 : 0;
      const { requeued, ended } = await this.#store.recoverLost({ requeues, ending, limits, count: MOST_RECOVERED });
      if (requeued.length + ended.length > 0) recovered?.({ requeued, ended });
    });
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

  async #pause(): Promise<void> {
    await new Promise<void>((resolve) => this.#context.clock.setTimer(PAUSE_MS, resolve, true));
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
