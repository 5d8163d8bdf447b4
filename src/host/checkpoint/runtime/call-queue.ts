import { interruption, onAbort } from "../../../base/abort.js";
import { LatentkitError } from "../../../base/errors.js";
import type { Place } from "../session/runtime.js";

/** One call's turn. Its work may stop early once its caller has given it up. */
export interface Turn {
  readonly isAbandoned: boolean;
}

interface Call extends Place {
  readonly turn: { isAbandoned: boolean };
  readonly start: () => Promise<void>;
  readonly interrupt: () => void;
}

export interface CallQueueOptions {
  /** Called when an abandoned call has kept another one waiting for `patienceMs`. */
  readonly onStuck: () => void;
  /** Called when the first call begins to wait, and when the last one stops. */
  readonly onWanted: (isWanted: boolean) => void;
  readonly patienceMs?: number;
  readonly mostWaiting?: number;
}

/** Ending the child and loading its sessions again takes about as long. */
const PATIENCE_MS = 1000;
/** Each holds its inputs in memory. */
const MOST_WAITING = 1024;
/** Runs whose turns are remembered. */
const MOST_RUNS = 4096;
/** A run's next call follows within milliseconds; this share of a call bounds the time lost if none does. */
const HOLD = { least: 5, most: 200, share: 0.1 } as const;
const ALONE: Place = { run: "", rank: 0 };

// decisions: Threads share one runtime and take turns
/**
 * Calls that take turns: those of the lowest rank first, of one rank that of the run which has waited longest for a turn,
 * of one run the oldest. An abort rejects a call at once; its work ends when it can.
 */
export class CallQueue {
  readonly #waiting: Call[] = [];
  #current: Call | undefined;
  #patience: NodeJS.Timeout | undefined;
  #wasWanted = false;
  /** Number of each run's last turn, the oldest first. */
  readonly #turns = new Map<string, number>();
  #turn = 0;
  /** The place after a call whose run will probably continue at once, and the time for which calls of higher ranks wait. */
  #hold: { readonly place: Place; readonly timer: NodeJS.Timeout } | undefined;
  readonly #options: CallQueueOptions;

  constructor(options: CallQueueOptions) {
    this.#options = options;
  }

  /** Whether a call is awaited. */
  get isWanted(): boolean {
    return this.#waiting.length > 0 || this.#current?.turn.isAbandoned === false;
  }

  /** Does some work when its turn comes. Rejects as the work does, with the signal's reason, and with runtime.failed for too many. */
  async add<T>(signal: AbortSignal | undefined, work: (turn: Turn) => Promise<T>, place = ALONE): Promise<T> {
    signal?.throwIfAborted();
    const { mostWaiting = MOST_WAITING } = this.#options;
    if (this.#waiting.length >= mostWaiting)
      throw new LatentkitError("runtime.failed", `ONNX Runtime is busy: ${mostWaiting} calls are already waiting.`);
    let leave = () => {};
    const result = new Promise<T>((resolve, reject) => {
      const turn = { isAbandoned: false };
      const call: Call = {
        ...place,
        turn,
        start: () => work(turn).then(resolve, reject),
        interrupt: () => reject(interruption(signal, "The host was closed.")),
      };
      this.#waiting.push(call);
      leave = onAbort(signal, () => this.#abandon(call));
    });
    this.#next();
    try {
      return await result;
    } finally {
      leave();
    }
  }

  /** Forgets a run that is over: no other call waits for its next one. */
  forget(run: string): void {
    this.#turns.delete(run);
    if (this.#hold?.place.run !== run) return;
    this.#release();
    this.#next();
  }

  /** Rejects all calls with run.interrupted. */
  clear(): void {
    for (const call of [...this.#waiting]) this.#abandon(call);
    if (this.#current !== undefined) this.#abandon(this.#current);
  }

  #abandon(call: Call): void {
    call.turn.isAbandoned = true;
    const index = this.#waiting.indexOf(call);
    if (index >= 0) this.#waiting.splice(index, 1);
    call.interrupt();
    this.#changed();
  }

  #next(): void {
    const call = this.#current === undefined ? this.#take() : undefined;
    this.#current ??= call;
    this.#changed();
    const started = performance.now();
    void call?.start().then(() => {
      this.#current = undefined;
      if (!call.turn.isAbandoned) this.#holdFor(call, performance.now() - started);
      this.#next();
    });
  }

  /** Takes the call whose turn it is; undefined if none is waiting, or all are held back. */
  #take(): Call | undefined {
    const turnOf = ({ run }: Call) => this.#turns.get(run) ?? 0;
    const isBefore = (a: Call, b: Call) => a.rank < b.rank || (a.rank === b.rank && turnOf(a) < turnOf(b));
    const first = this.#waiting.reduce<Call | undefined>(
      (best, call) => (best === undefined || isBefore(call, best) ? call : best),
      undefined,
    );
    if (first === undefined || first.rank > (this.#hold?.place.rank ?? Number.POSITIVE_INFINITY)) return undefined;
    this.#release();
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    this.#turns.delete(first.run);
    this.#turns.set(first.run, ++this.#turn);
    if (this.#turns.size > MOST_RUNS) this.#turns.delete(this.#turns.keys().next().value!);
    return first;
  }

  /** Keeps calls of higher ranks back for a moment: a step of a younger item would delay the older one's next. */
  #holdFor(place: Place, ms: number): void {
    const time = Math.min(HOLD.most, Math.max(HOLD.least, ms * HOLD.share));
    const timer = setTimeout(() => {
      this.#release();
      this.#next();
    }, time).unref();
    this.#hold = { place, timer };
  }

  #release(): void {
    clearTimeout(this.#hold?.timer);
    this.#hold = undefined;
  }

  #changed(): void {
    const { onStuck, onWanted, patienceMs = PATIENCE_MS } = this.#options;
    const isHeldUp = this.#waiting.length > 0 && this.#current?.turn.isAbandoned === true;
    if (isHeldUp) this.#patience ??= setTimeout(onStuck, patienceMs);
    else {
      clearTimeout(this.#patience);
      this.#patience = undefined;
    }
    const { isWanted } = this;
    if (isWanted === this.#wasWanted) return;
    this.#wasWanted = isWanted;
    onWanted(isWanted);
  }
}
