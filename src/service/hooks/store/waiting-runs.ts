import { insert, remove } from "./sorted.js";

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
