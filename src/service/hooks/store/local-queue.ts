import type { RunOrigin } from "../run.js";
import { Admission } from "./admission.js";
import type { Claim, NextMarks, RunCounts } from "./queue-store.js";
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
  readyMark: Math.max(createdMark, terms.dueMark ?? 0),
  hasStarted: false,
  token: 0,
  worker: null,
});

/**
 * The queue of a store that one process has for itself: its order is kept here, so that a start costs the store one
 * statement. Each change follows the store's.
 */
export class LocalQueue {
  readonly #waiting = new WaitingRuns<QueuedRun>();
  /** Those whose delay is not known to be over, first its end. */
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

  /** Null where there is room for the runs of one call. */
  refusal(runs: readonly NewRun[]): Full | null {
    const { room } = runs[0]!;
    if (room === undefined) return null;
    const admission = new Admission(room);
    const created = new Map<string, number>();
    for (const { sessionKey, terms } of runs) {
      const own = created.get(sessionKey) ?? 0;
      const queued = this.#waiting.countOf(sessionKey) + own;
      const running = this.#runningOf.get(sessionKey) ?? 0;
      const scope = admission.refusal({ queued, running }, terms.dueMark !== null);
      if (scope !== null) return { kind: "full", scope };
      created.set(sessionKey, own + 1);
    }
    return null;
  }

  add(run: QueuedRun): void {
    this.#newest = Math.max(this.#newest, run.seq);
    this.#insert(run, run.dueMark !== null);
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
      const run = this.#waiting.takeNext(mayStart);
      if (run === undefined) break;
      this.#removeMarks(run);
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
    this.#insert(run, dueMark !== undefined);
  }

  /** Forgets a run that has ended. */
  end(id: string): void {
    this.#release(id);
    const run = this.#waiting.take(id);
    if (run !== undefined) this.#removeMarks(run);
  }

  /** Whether the run is running and this is the token of its last start. */
  isHeld(id: string, token: number): boolean {
    return this.#running.get(id)?.token === token;
  }

  /** Runs that no worker but `worker` can hold any more. */
  lostTo(worker: string, count: number): QueuedRun[] {
    return [...this.#running.values()].filter((run) => run.worker !== worker).slice(0, count);
  }

  counts(most: number): RunCounts {
    let queued = 0;
    for (const { origin } of this.#waiting) if (origin !== "batch") queued += 1;
    return { queued: Math.min(queued, most), running: Math.min(this.#running.size, most), newest: this.#newest };
  }

  positionOf(id: string, most: number): number {
    return Math.min(this.#waiting.positionOf(id), most + 1);
  }

  nextMarks(afterMark: number): NextMarks {
    this.#endDelays(afterMark);
    return {
      due: this.#delayed[0]?.dueMark ?? null,
      deadline: this.#limited[0]?.deadlineMark ?? null,
      ready: this.#expiring[0]?.readyMark ?? null,
    };
  }

  overdue(readyBefore: number, count: number): string[] {
    const first = this.#expiring.slice(0, count);
    return first.filter(({ readyMark }) => readyMark <= readyBefore).map(({ id }) => id);
  }

  pastDeadline(nowMark: number, count: number): { readonly id: string; readonly deadlineMark: number }[] {
    const first = this.#limited.slice(0, count).map(({ id, deadlineMark }) => ({ id, deadlineMark: deadlineMark! }));
    return first.filter(({ deadlineMark }) => deadlineMark <= nowMark);
  }

  #endDelays(nowMark: number): void {
    while (this.#delayed.length > 0 && this.#delayed[0]!.dueMark! <= nowMark) {
      this.#waiting.endDelay(this.#delayed.shift()!.id);
    }
  }

  #insert(run: QueuedRun, isDelayed: boolean): void {
    this.#waiting.add(run, isDelayed);
    if (isDelayed) insert(this.#delayed, run, byDue);
    if (run.deadlineMark !== null) insert(this.#limited, run, byDeadline);
    if (expires(run)) insert(this.#expiring, run, byReady);
  }

  #removeMarks(run: QueuedRun): void {
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

const byDue = (a: QueuedRun, b: QueuedRun) => a.dueMark! - b.dueMark! || a.seq - b.seq;
const byDeadline = (a: QueuedRun, b: QueuedRun) => a.deadlineMark! - b.deadlineMark! || a.seq - b.seq;
const byReady = (a: QueuedRun, b: QueuedRun) => a.readyMark - b.readyMark || a.seq - b.seq;

/** A run in the queue. */
export interface WaitingRun {
  readonly id: string;
  /** Order of creation. */
  readonly seq: number;
  readonly sessionKey: string;
  readonly priority: number;
}

/**
 * Runs that wait: within a session the oldest comes first, and the first ones of the sessions come by priority, then
 * oldest first. Each operation costs as little with 100,000 runs as with one, but for `positionOf`.
 *
 * @internal
 */
export class WaitingRuns<T extends WaitingRun> {
  readonly #runs = new Map<string, T>();
  /** Runs by session, oldest first. */
  readonly #sessions = new Map<string, T[]>();
  readonly #delayed = new Set<T>();
  /** The first run of each session that may start, in order of start. */
  readonly #heads: T[] = [];

  get size(): number {
    return this.#runs.size;
  }

  has(id: string): boolean {
    return this.#runs.has(id);
  }

  countOf(sessionKey: string): number {
    return this.#sessions.get(sessionKey)?.length ?? 0;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#runs.values();
  }

  /** Adds a run; a delayed one, and those behind it in its session, wait for `endDelay`. */
  add(run: T, isDelayed = false): void {
    this.#runs.set(run.id, run);
    if (isDelayed) this.#delayed.add(run);
    const session = this.#sessions.get(run.sessionKey) ?? [];
    this.#sessions.set(run.sessionKey, session);
    const [head] = session;
    insert(session, run, bySeq);
    if (session[0] !== run) return;
    this.#removeHead(head);
    this.#insertHead(run);
  }

  /** Lets a delayed run start; leaves any other as it is. */
  endDelay(id: string): void {
    const run = this.#runs.get(id);
    if (run === undefined || !this.#delayed.delete(run)) return;
    if (this.#sessions.get(run.sessionKey)![0] === run) this.#insertHead(run);
  }

  /** Takes a run out; undefined where it does not wait. */
  take(id: string): T | undefined {
    const run = this.#runs.get(id);
    if (run === undefined) return undefined;
    this.#runs.delete(id);
    const session = this.#sessions.get(run.sessionKey)!;
    const isHead = session[0] === run;
    remove(session, run, bySeq);
    if (session.length === 0) this.#sessions.delete(run.sessionKey);
    if (isHead) {
      this.#removeHead(run);
      this.#insertHead(session[0]);
    }
    this.#delayed.delete(run);
    return run;
  }

  /** Takes out the run that starts next, the first one for which `isFree` holds. */
  takeNext(isFree: (run: T) => boolean): T | undefined {
    const next = this.#heads.find(isFree);
    return next && this.take(next.id);
  }

  #insertHead(run: T | undefined): void {
    if (run !== undefined && !this.#delayed.has(run)) insert(this.#heads, run, byStart);
  }

  #removeHead(run: T | undefined): void {
    if (run !== undefined && !this.#delayed.has(run)) remove(this.#heads, run, byStart);
  }

  /** Position by priority and age, 1 for the next; behind all where the run does not wait. */
  positionOf(id: string): number {
    const own = this.#runs.get(id);
    if (own === undefined) return this.size + 1;
    let ahead = 0;
    for (const run of this.#runs.values()) if (byStart(run, own) < 0) ahead += 1;
    return ahead + 1;
  }
}

const bySeq = (a: WaitingRun, b: WaitingRun) => a.seq - b.seq;
const byStart = (a: WaitingRun, b: WaitingRun) => b.priority - a.priority || a.seq - b.seq;

type Order<T> = (a: T, b: T) => number;

/** Adds an element to a list that is in order. */
function insert<T>(sorted: T[], element: T, order: Order<T>): void {
  sorted.splice(indexOf(sorted, element, order), 0, element);
}

/** Takes out an element; leaves a list without it as it is. */
function remove<T>(sorted: T[], element: T, order: Order<T>): void {
  const index = indexOf(sorted, element, order);
  if (sorted[index] === element) sorted.splice(index, 1);
}

/** Index of the first element that is not before another one. */
function indexOf<T>(sorted: readonly T[], element: T, order: Order<T>): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order(sorted[middle]!, element) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
