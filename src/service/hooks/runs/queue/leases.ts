import type { Timer } from "../../clock.js";
import { type SharedStore, storeTime } from "../../store/store.js";
import { interrupted } from "../outcome.js";
import type { RunContext, StoreTurns } from "../run-context.js";
import type { RunTask } from "../task/run-task.js";

/** Interval of renewals, and of looks for runs, since hints may be lost. */
const BEAT_MS = 1000;
/** Least time between two renewals after hints of other processes. */
const HINTED_BEAT_MS = 250;
/** Looks for lost runs within one lease. */
const LOOKS_PER_LEASE = 3;
const MOST_RECOVERED = 100;

export interface LeaseOptions {
  /** Id of the worker. */
  readonly worker: string;
  readonly leaseMs: number;
  /** Fate of runs whose worker was lost. */
  readonly onLoss: "requeue" | "interrupt";
  /** The runs that the worker holds. */
  readonly held: ReadonlyMap<string, { readonly task: RunTask; readonly token: number }>;
  /** Called after each beat; the next one follows as long as it returns true. */
  readonly beaten: () => boolean;
}

/** The leases of one worker in a shared store: renews its own, and takes the runs of lost workers. */
export class Leases {
  readonly #context: RunContext;
  readonly #store: SharedStore;
  readonly #turns: StoreTurns;
  readonly #options: LeaseOptions;
  #hintedBeat: Timer | undefined;
  #beat: Timer | undefined;
  /** Monotonic ms before which no run counts as lost. */
  #recoverFrom = 0;

  constructor(context: RunContext, store: SharedStore, turns: StoreTurns, options: LeaseOptions) {
    this.#context = context;
    this.#store = store;
    this.#turns = turns;
    this.#options = options;
  }

  /** Sets the time by the store's. Fails with store_unavailable. */
  async open(): Promise<void> {
    this.#context.mark.set(await storeTime(this.#store, this.#context.clock));
    if (this.#beat === undefined) this.#beatLater();
  }

  renewSoon(): void {
    this.#hintedBeat ??= this.#context.clock.setTimer(HINTED_BEAT_MS, () => {
      this.#hintedBeat = undefined;
      void this.#renew();
    });
  }

  stop(): void {
    this.#beat?.cancel();
    this.#hintedBeat?.cancel();
  }

  /** Keeps the process alive: a worker waits for runs. */
  #beatLater(): void {
    const beat = async () => {
      await this.#renew();
      await this.#recoverLost();
      if (this.#options.beaten()) this.#beatLater();
    };
    this.#beat = this.#context.clock.setTimer(BEAT_MS, beat, true);
  }

  /** In turn with claims: a renewal knows every run that was claimed before it. */
  async #renew(): Promise<void> {
    const { worker, leaseMs, held } = this.#options;
    await this.#turns.next(async () => {
      const rows = await this.#store.renew(worker, leaseMs);
      const tokens = new Map(rows.map(({ id, token }) => [id, token]));
      // ended or taken elsewhere: its writes would be refused
      for (const [id, { task, token }] of held) if (tokens.get(id) !== token) task.interrupt();
      for (const { id, token } of rows) {
        // claimed by a statement whose answer was lost
        if (held.get(id)?.token !== token) await this.#store.release(id, token);
      }
    });
  }

  async #recoverLost(): Promise<void> {
    const { clock, mark } = this.#context;
    const { worker, leaseMs, onLoss } = this.#options;
    // while the store was gone, others could not renew
    const from = Math.max(this.#recoverFrom, this.#turns.failedAt + leaseMs);
    if (this.#turns.isFailing || clock.monotonic() < from) return;
    this.#recoverFrom = clock.monotonic() + leaseMs / LOOKS_PER_LEASE;
    await this.#turns.try(async () => {
      mark.notBefore(await storeTime(this.#store, clock));
      await recover(this.#context, worker, onLoss === "requeue" ? 1 : 0);
    });
  }
}

/** Takes runs of lost workers, each of which is queued again up to `requeues` times. Returns their number. */
export async function recover(context: RunContext, worker: string, requeues: number): Promise<number> {
  const { store, clock, mark, eventLimits: limits, receiversOf, bus, observer } = context;
  const { state: to, terminal, error } = interrupted();
  const ending = { to, terminal, error, finishedAt: clock.now(), endedMark: mark(), receivers: receiversOf?.(to) };
  const lost = await store.recoverLost({ worker, requeues, ending, limits, count: MOST_RECOVERED });
  const ids = [...lost.requeued, ...lost.ended];
  for (const id of ids) bus.wake(id);
  if (ids.length > 0) observer.recovered?.(lost);
  return ids.length;
}
