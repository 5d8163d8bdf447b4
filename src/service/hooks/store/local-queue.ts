import type { RunOrigin } from "../run.js";
import { Admission } from "./admission.js";
import { type Claim, type QueueStore, turnOf } from "./queue-store.js";
import type { Full, NewRun } from "./store.js";

/** An unfinished run as the queue of its process knows it. */
export interface QueuedRun {
  readonly id: string;
  readonly seq: number;
  readonly sessionKey: string;
  readonly origin: RunOrigin;
  readonly priority: number;
  readonly deadlineMark: number | null;
  /** Steady ms before which it does not start; null: at once. */
  dueMark: number | null;
  /** Whether that is not known to be over: later runs of its session wait with it. */
  isDelayed: boolean;
  /** Steady ms since which it could start. */
  readonly readyMark: number;
  /** Whether it has been started, by this process or an earlier one. */
  hasStarted: boolean;
  /** Number of its starts by this process. */
  token: number;
  /** Worker that holds it; null: lost with the process that held it. */
  worker: string | null;
}

/** A run that has just been created. */
export const queuedRun = ({ id, sessionKey, start, terms, createdMark }: NewRun, seq: number): QueuedRun => ({
  // no spread: every start pays for it
  id,
  seq,
  sessionKey,
  origin: start.origin,
  priority: terms.priority,
  deadlineMark: terms.deadlineMark,
  dueMark: terms.dueMark,
  isDelayed: terms.dueMark !== null,
  readyMark: Math.max(createdMark, terms.dueMark ?? 0),
  hasStarted: false,
  token: 0,
  worker: null,
});

/**
 * The queue of a store that one process has for itself: its order is kept here, so that a start costs the store one
 * statement. Each change follows the store's. Within a session runs come by `turnOf`, and the first ones of the
 * sessions come by priority, then oldest first. Each change costs as little with 100,000 runs as with one.
 */
export class LocalQueue {
  readonly #waiting = new Map<string, QueuedRun>();
  /** Waiting runs by session, in order of their turns. */
  readonly #sessions = new Map<string, QueuedRun[]>();
  /** The first waiting run of each session that is not delayed, in order of start. */
  readonly #heads: QueuedRun[] = [];
  /** The delayed ones, first the end of whose delay is first. */
  readonly #delayed: QueuedRun[] = [];
  /** Those with a deadline, first the earliest. */
  readonly #limited: QueuedRun[] = [];
  /** Those that may wait too long, longest waiting first. */
  readonly #expiring: QueuedRun[] = [];
  readonly #running = new Map<string, QueuedRun>();
  readonly #runningOf = new Map<string, number>();
  #perSession = 1;
  #newest = 0;
  isPaused = false;

  /** Adds the runs that an earlier process left. */
  open(perSession: number, queued: readonly QueuedRun[], running: readonly QueuedRun[]): void {
    this.#perSession = perSession;
    const isNew = ({ id }: QueuedRun) => !this.#running.has(id) && !this.#waiting.has(id);
    for (const run of queued.filter(isNew)) this.add(run);
    for (const run of running.filter(isNew)) this.#hold(run);
  }

  /** Null if there is room for the runs of one call. */
  refusal(runs: readonly NewRun[]): Full | null {
    const { room } = runs[0]!;
    if (room === undefined) return null;
    const admission = new Admission(room);
    const created = new Map<string, number>();
    for (const { sessionKey, terms } of runs) {
      const own = created.get(sessionKey) ?? 0;
      const queued = (this.#sessions.get(sessionKey)?.length ?? 0) + own;
      const running = this.#runningOf.get(sessionKey) ?? 0;
      const scope = admission.refusal({ queued, running }, terms.dueMark !== null);
      if (scope !== null) return { kind: "full", scope };
      created.set(sessionKey, own + 1);
    }
    return null;
  }

  add(run: QueuedRun): void {
    this.#newest = Math.max(this.#newest, run.seq);
    this.#insert(run);
  }

  /** Takes out the runs that start next; the caller stores that, then sets `hasStarted`, or puts them back. */
  take({ worker, count, takesBatches, nowMark }: Omit<Claim, "leaseMs" | "startedAt" | "event">): QueuedRun[] {
    if (this.isPaused) return [];
    this.#endDelays(nowMark);
    const mayStart = (run: QueuedRun) =>
      (this.#runningOf.get(run.sessionKey) ?? 0) < this.#perSession &&
      (run.deadlineMark === null || run.deadlineMark > nowMark) &&
      (takesBatches || run.origin !== "batch");
    const taken: QueuedRun[] = [];
    while (taken.length < count) {
      const run = this.#heads.find(mayStart);
      if (run === undefined) break;
      this.#remove(run);
      run.token += 1;
      run.worker = worker;
      this.#hold(run);
      taken.push(run);
    }
    return taken;
  }

  /** Puts a run back in its place that is queued again, or whose start could not be stored. */
  putBack(id: string, dueMark?: number): void {
    const run = this.#release(id);
    if (run === undefined) return;
    run.dueMark = dueMark ?? run.dueMark;
    run.isDelayed = dueMark !== undefined;
    this.#insert(run);
  }

  /** Forgets a run that has ended. */
  end(id: string): void {
    this.#release(id);
    const run = this.#waiting.get(id);
    if (run !== undefined) this.#remove(run);
  }

  /** Whether `token`, if it is given, is that of the last start of a running run. */
  isHeld(id: string, token: number | undefined): boolean {
    return token === undefined || this.#running.get(id)?.token === token;
  }

  /** Runs that no worker but `worker` can hold any more. */
  lostTo(worker: string, count: number): QueuedRun[] {
    return [...this.#running.values()].filter((run) => run.worker !== worker).slice(0, count);
  }

  /** The reads of a store that has this queue. */
  reads(): Pick<QueueStore, "countRuns" | "positionOf" | "nextMarks" | "overdue" | "pastDeadline"> {
    return {
      countRuns: async (most) => {
        let queued = 0;
        for (const { origin } of this.#waiting.values()) if (origin !== "batch") queued += 1;
        return { queued: Math.min(queued, most), running: Math.min(this.#running.size, most), newest: this.#newest };
      },
      /** By priority and age; behind all if the run does not wait. */
      positionOf: async (id, most) => {
        const own = this.#waiting.get(id);
        let ahead = own === undefined ? this.#waiting.size : 0;
        if (own !== undefined) for (const run of this.#waiting.values()) if (byStart(run, own) < 0) ahead += 1;
        return Math.min(ahead, most) + 1;
      },
      nextMarks: async (afterMark) => {
        this.#endDelays(afterMark);
        return {
          due: this.#delayed[0]?.dueMark ?? null,
          deadline: this.#limited[0]?.deadlineMark ?? null,
          ready: this.#expiring[0]?.readyMark ?? null,
        };
      },
      overdue: async (readyBefore, count) => {
        const first = this.#expiring.slice(0, count);
        return first.filter(({ readyMark }) => readyMark <= readyBefore).map(({ id }) => id);
      },
      pastDeadline: async (nowMark, count) => {
        const first = this.#limited
          .slice(0, count)
          .map(({ id, deadlineMark }) => ({ id, deadlineMark: deadlineMark! }));
        return first.filter(({ deadlineMark }) => deadlineMark <= nowMark);
      },
    };
  }

  #endDelays(nowMark: number): void {
    while (this.#delayed.length > 0 && this.#delayed[0]!.dueMark! <= nowMark) {
      const run = this.#delayed.shift()!;
      run.isDelayed = false;
      if (this.#sessions.get(run.sessionKey)![0] === run) insert(this.#heads, run, byStart);
    }
  }

  #insert(run: QueuedRun): void {
    this.#waiting.set(run.id, run);
    const session = this.#sessions.get(run.sessionKey) ?? [];
    this.#sessions.set(run.sessionKey, session);
    const [head] = session;
    insert(session, run, byTurn);
    if (session[0] === run) {
      if (head !== undefined) remove(this.#heads, head, byStart);
      if (!run.isDelayed) insert(this.#heads, run, byStart);
    }
    if (run.isDelayed) insert(this.#delayed, run, byDue);
    if (run.deadlineMark !== null) insert(this.#limited, run, byDeadline);
    if (expires(run)) insert(this.#expiring, run, byReady);
  }

  #remove(run: QueuedRun): void {
    this.#waiting.delete(run.id);
    const session = this.#sessions.get(run.sessionKey)!;
    const isHead = session[0] === run;
    remove(session, run, byTurn);
    if (session.length === 0) this.#sessions.delete(run.sessionKey);
    const [next] = session;
    if (isHead) {
      remove(this.#heads, run, byStart);
      if (next !== undefined && !next.isDelayed) insert(this.#heads, next, byStart);
    }
    if (run.dueMark !== null) remove(this.#delayed, run, byDue);
    if (run.deadlineMark !== null) remove(this.#limited, run, byDeadline);
    remove(this.#expiring, run, byReady);
  }

  #hold(run: QueuedRun): void {
    this.#running.set(run.id, run);
    this.#runningOf.set(run.sessionKey, (this.#runningOf.get(run.sessionKey) ?? 0) + 1);
  }

  #release(id: string): QueuedRun | undefined {
    const run = this.#running.get(id);
    if (run === undefined) return undefined;
    this.#running.delete(id);
    const left = this.#runningOf.get(run.sessionKey)! - 1;
    if (left === 0) this.#runningOf.delete(run.sessionKey);
    else this.#runningOf.set(run.sessionKey, left);
    return run;
  }
}

// one of a batch waits as long as it takes, and so does one that has started
const expires = ({ hasStarted, origin }: QueuedRun) => !hasStarted && origin !== "batch";

const byTurn: Order = (a, b) => turnOf(a) - turnOf(b);
const byStart: Order = (a, b) => b.priority - a.priority || a.seq - b.seq;
const byDue: Order = (a, b) => a.dueMark! - b.dueMark! || a.seq - b.seq;
const byDeadline: Order = (a, b) => a.deadlineMark! - b.deadlineMark! || a.seq - b.seq;
const byReady: Order = (a, b) => a.readyMark - b.readyMark || a.seq - b.seq;

type Order = (a: QueuedRun, b: QueuedRun) => number;

/** Adds a run to a list that is in order. */
function insert(sorted: QueuedRun[], run: QueuedRun, order: Order): void {
  sorted.splice(indexOf(sorted, run, order), 0, run);
}

/** Takes out a run; leaves a list without it as it is. */
function remove(sorted: QueuedRun[], run: QueuedRun, order: Order): void {
  const index = indexOf(sorted, run, order);
  if (sorted[index] === run) sorted.splice(index, 1);
}

/** Index of the first run that is not before another one. */
function indexOf(sorted: readonly QueuedRun[], run: QueuedRun, order: Order): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order(sorted[middle]!, run) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
