import { randomUUID } from "node:crypto";
import { type Timer, within } from "../../clock.js";
import type { HeldRun } from "../../store/queue-store.js";
import { isShared } from "../../store/store.js";
import { type RunContext, StoreTurns } from "../run-context.js";
import { toJsonLine } from "../safe-json.js";
import { RunTask } from "../task/run-task.js";
import { Leases, recover } from "./leases.js";

/** Least time between two claims after hints of other processes. */
const HINTED_CLAIM_MS = 25;
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

/** The runs that one worker holds: claims them and runs them. In a shared store it holds them by leases. */
export class Claims {
  readonly #id = randomUUID();
  readonly #context: RunContext;
  readonly #options: ClaimOptions;
  readonly #held = new Map<string, Held>();
  readonly #turns: StoreTurns;
  readonly #leases: Leases | undefined;
  #isClaiming = false;
  #isClaimDue = false;
  #hintedClaim: Timer | undefined;
  #isHintedAgain = false;
  /** Time after a failure of the store. */
  #rest: Timer | undefined;
  #endListening: (() => void) | undefined;
  #isStopped = false;
  #isReleasing = false;
  #whenIdle: (() => void)[] = [];

  constructor(context: RunContext, options: ClaimOptions) {
    this.#context = context;
    this.#options = options;
    this.#turns = new StoreTurns(context);
    if (!isShared(context.store)) return;
    const beaten = () => {
      this.claimSoon();
      return !this.#isStopped || this.#held.size > 0;
    };
    const { leaseMs, onLoss } = options;
    const own = { worker: this.#id, leaseMs, onLoss, held: this.#held, beaten };
    this.#leases = new Leases(context, context.store, this.#turns, own);
  }

  /** Takes the runs of an earlier process, which are lost with it, or begins to renew leases. Fails with store_unavailable. */
  async open(): Promise<void> {
    const { store } = this.#context;
    if (this.#leases !== undefined && isShared(store)) {
      await this.#leases.open();
      this.#endListening ??= store.listen((id) => this.#hear(id));
      return;
    }
    const requeues = this.#options.onLoss === "requeue" ? Number.POSITIVE_INFINITY : 0;
    while ((await recover(this.#context, this.#id, requeues)) > 0);
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
    await this.#turns.done();
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
    await this.#turns.done();
    if (!(await within(this.#context.clock, seconds * 1000, this.#idle()))) await this.#giveUpAll();
    this.#leases?.stop();
    this.#hintedClaim?.cancel();
    this.#rest?.cancel();
    this.#endListening?.();
    await this.#turns.done();
  }

  async #giveUpAll(): Promise<void> {
    this.#isReleasing = this.#leases !== undefined && this.#options.onLoss === "requeue";
    const tasks = [...this.#held.values()].map(({ task }) => task);
    for (const task of tasks) task.interrupt();
    await Promise.all(
      tasks.map(async (task) => {
        // if the store cannot be told, their leases end by themselves
        if ((await task.whenStored()) !== null) task.giveUp();
      }),
    );
    await this.#idle();
  }

  /** A change of a held run may be its end by a front end; any other may be a run to claim. */
  #hear(id: string | null): void {
    if (id === null || this.#held.has(id)) this.#leases?.renewSoon();
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
      const hasClaimed = await this.#turns.next(() => this.#claim());
      if (hasClaimed === undefined) return this.#claimLater();
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

  async #claim(): Promise<true> {
    if (this.free === 0 || this.#isStopped) return true;
    const { store, batchAgent, clock, mark } = this.#context;
    const held = await store.claim({
      worker: this.#id,
      count: this.free,
      takesBatches: batchAgent !== undefined,
      leaseMs: this.#options.leaseMs,
      startedAt: clock.now(),
      nowMark: mark(),
      event: STARTED,
    });
    this.#options.claimed?.(held.filter(({ run }) => run.origin !== "batch").length);
    for (const run of held) this.#hold(run);
    return true;
  }

  #hold(held: HeldRun): void {
    const waitedMs = Math.max(0, this.#context.mark() - held.readyMark);
    const task = new RunTask(held, waitedMs, this.#context, () => this.#isReleasing);
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

  async #idle(): Promise<void> {
    if (this.#held.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}
