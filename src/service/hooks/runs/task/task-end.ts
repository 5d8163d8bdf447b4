import type { RunRow } from "../../run.js";
import type { EventBatch, NextAttempt } from "../../store/queue-store.js";
import { isTransient, type Outcome } from "../outcome.js";
import type { RunContext } from "../run-context.js";
import { toJsonLine } from "../safe-json.js";

/** An event that may end a run. */
export type EndEvent = "returned" | "thrown" | "timeUp" | "cut" | "fileLost" | "endedElsewhere";

/** Consequences of an event, in this order. */
interface Moves {
  /** Its outcome is that of the run. */
  readonly ends?: true;
  /** Its outcome stands where the run's last files are left out. */
  readonly isLate?: true;
  /** The agent stops, and files on their way are left out. */
  readonly aborts?: true;
}

// The first outcome of an attempt counts; a cancel after a failure ends only a run that would be tried again.
/** Moves of each event, while the agent works and once the run has an outcome: the first one wins. */
const TABLE: Record<EndEvent, { readonly working: Moves; readonly ending: Moves }> = {
  returned: { working: { ends: true }, ending: {} },
  thrown: { working: { ends: true }, ending: {} },
  timeUp: { working: { ends: true, aborts: true }, ending: {} },
  cut: { working: { ends: true, aborts: true }, ending: { isLate: true, aborts: true } },
  fileLost: { working: { ends: true, aborts: true }, ending: { aborts: true } },
  endedElsewhere: { working: { ends: true, aborts: true }, ending: {} },
};

/** How one attempt of a run ends. */
export class TaskEnd {
  readonly #abort = new AbortController();
  readonly #onEnd: () => void;
  #settle: (outcome: Outcome) => void = () => undefined;
  #state: "working" | "ending" = "working";
  /** Outcome of a cut that came after that of the run. */
  late: Outcome | undefined;
  readonly outcome: Promise<Outcome>;

  /** `onEnd`: called once, with the outcome's event. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Aborts where the agent, and the storing of files, are to stop. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isSettled(): boolean {
    return this.#state === "ending";
  }

  /** Returns whether the outcome is that of the run. */
  take(event: EndEvent, outcome: Outcome): boolean {
    const { ends = false, isLate = false, aborts = false } = TABLE[event][this.#state];
    if (isLate) this.late ??= outcome;
    if (ends) {
      this.#state = "ending";
      this.#onEnd();
      this.#settle(outcome);
    }
    if (aborts) this.#abort.abort(new DOMException(reasonOf(event, outcome), "AbortError"));
    return ends;
  }
}

const reasonOf = (event: EndEvent, { state }: Outcome): string =>
  event === "fileLost" ? "A file of the run could not be stored." : `The run was ended (${state}).`;

/** The attempt that follows one with an outcome; undefined where none does: it fails for good, or misses its deadline. */
export function nextAttempt(
  { retries, mark }: RunContext,
  { attempt, deadlineMark }: RunRow,
  { state, error }: Outcome,
  failure: { readonly error: unknown } | undefined,
): NextAttempt | undefined {
  if (state !== "failed" || failure === undefined || attempt >= retries.attempts) return undefined;
  if (!isTransient(failure.error, retries)) return undefined;
  const delayMs = retries.delayMs(attempt);
  const dueMark = mark() + delayMs;
  if (deadlineMark !== null && dueMark >= deadlineMark) return undefined;
  const data = { attempt: attempt + 1, delay_seconds: delayMs / 1000, ...error };
  return { dueMark, event: { event: "retry", data: toJsonLine(data) } };
}

/**
 * Queues a running run for its next attempt, after the last events of this one, and wakes its readers. Returns false where
 * it is not running any more. Fails with store_unavailable.
 */
export async function storeRetry(
  { store, eventLimits, bus }: RunContext,
  id: string,
  next: NextAttempt,
  lastEvents: EventBatch,
  token: number,
): Promise<boolean> {
  const isStored = await store.retryRun(id, next, lastEvents, eventLimits, token);
  bus.wake(id);
  return isStored;
}
