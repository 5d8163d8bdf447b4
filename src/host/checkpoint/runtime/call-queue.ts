import { interruption, onAbort } from "../../../base/abort.js";
import { LatentkitError } from "../../../base/errors.js";

/** One call's turn. Its work may stop early once nobody waits for it. */
export interface Turn {
  readonly isAbandoned: boolean;
}

interface Call {
  readonly turn: { isAbandoned: boolean };
  readonly start: () => Promise<void>;
  readonly interrupt: () => void;
}

export interface CallQueueOptions {
  /** Called when a call that nobody waits for has kept another one waiting for `patienceMs`. */
  readonly onStuck: () => void;
  /** Called when somebody begins to wait, and when nobody does any more. */
  readonly onWanted: (isWanted: boolean) => void;
  readonly patienceMs?: number;
  readonly mostWaiting?: number;
}

/** Ending the child and loading its sessions again takes about as long. */
const PATIENCE_MS = 1000;
/** Each holds its inputs in memory. */
const MOST_WAITING = 256;

/** Calls that take turns, first come first served. An abort rejects a call at once; its work ends when it can. */
export class CallQueue {
  readonly #waiting: Call[] = [];
  #current: Call | undefined;
  #patience: NodeJS.Timeout | undefined;
  #wasWanted = false;

  constructor(private readonly options: CallQueueOptions) {}

  /** Whether somebody waits for a call. */
  get isWanted(): boolean {
    return this.#waiting.length > 0 || this.#current?.turn.isAbandoned === false;
  }

  /** Does some work when its turn comes. Rejects as the work does, with the signal's reason, and with runtime.failed for too many. */
  async add<T>(signal: AbortSignal | undefined, work: (turn: Turn) => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const { mostWaiting = MOST_WAITING } = this.options;
    if (this.#waiting.length >= mostWaiting)
      throw new LatentkitError("runtime.failed", `ONNX Runtime is busy: ${mostWaiting} calls are already waiting.`);
    let leave = () => {};
    const result = new Promise<T>((resolve, reject) => {
      const turn = { isAbandoned: false };
      const call: Call = {
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
    const call = this.#current === undefined ? this.#waiting.shift() : undefined;
    this.#current ??= call;
    this.#changed();
    void call?.start().then(() => {
      this.#current = undefined;
      this.#next();
    });
  }

  #changed(): void {
    const { onStuck, onWanted, patienceMs = PATIENCE_MS } = this.options;
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
