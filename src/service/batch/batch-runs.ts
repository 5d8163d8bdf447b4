import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { LatentkitError } from "../../base/errors.js";
import { steadyWall, systemClock } from "../hooks/clock.js";
import { PLAIN_TERMS, type RunFile, type RunTerms, type TerminalState } from "../hooks/run.js";
import { cancelled } from "../hooks/runs/outcome.js";
import type { EventBatch } from "../hooks/store/queue-store.js";
import { type SharedStore, storeTime } from "../hooks/store/store.js";
import { PACK_NAME } from "./batch-message.js";

/** Interval of looks at the store, whose hints may be lost. */
const POLL_MS = 500;
const RETRY_MS = 250;
const REMOVED_AT_ONCE = 100;
/** Time for which the store may fail before the batch ends. */
const PATIENCE_MS = 30_000;
/** Below all runs of hooks, which clients wait for. The time ends a run whose node never ends: a batch has no limit. */
const TERMS: RunTerms = { ...PLAIN_TERMS, priority: -1, timeoutSeconds: 7 * 24 * 3600 };

const NO_EVENTS: EventBatch = { skip: 0, events: [], files: [] };
const LIMITS = { events: 100, bytes: 2 ** 24 };

export interface BatchRunsOptions {
  /** Called when runs have started or ended. */
  readonly changed: () => void;
  /** Time for which the store may fail; 30 s if absent. */
  readonly patienceMs?: number;
}

type OpenState = "queued" | "running";

/** End of a run. */
export interface RunEnd {
  /** "gone": the store no longer has the run. */
  readonly state: TerminalState | "gone";
  /** Response of a run that succeeded. */
  readonly response?: string;
  /** The run's pack, if it has one. */
  readonly pack?: RunFile;
  readonly error?: { readonly error: string; readonly code: string } | null;
}

interface Followed {
  state: OpenState;
  revision: string | undefined;
  readonly end: (end: RunEnd) => void;
  readonly fail: (error: unknown) => void;
}

/** The runs of a batch in a store: queues them, follows them to their ends, and cancels them. */
export class BatchRuns {
  readonly #store: SharedStore;
  readonly #patienceMs: number;
  readonly #changed: () => void;
  /** Ids of runs that have ended and are not removed yet. */
  #ended: string[] = [];
  #removing: Promise<void> | undefined;
  readonly #now = steadyWall(systemClock);
  readonly #followed = new Map<string, Followed>();
  #failingSince: number | undefined;
  #looking: Promise<void> | undefined;
  #isLookDue = false;
  #timer: NodeJS.Timeout | undefined;
  #endListening: (() => void) | undefined;

  constructor(store: SharedStore, { changed, patienceMs = PATIENCE_MS }: BatchRunsOptions) {
    this.#store = store;
    this.#changed = changed;
    this.#patienceMs = patienceMs;
  }

  /** Rejects with store_unavailable. */
  async open(): Promise<void> {
    this.#now.set(await storeTime(this.#store, systemClock));
    this.#endListening = this.#store.listen((id) => {
      if (id === null || this.#followed.has(id)) this.#lookSoon();
    });
    this.#timer = setInterval(() => this.#lookSoon(), POLL_MS);
  }

  get running(): number {
    return [...this.#followed.values()].filter(({ state }) => state === "running").length;
  }

  /** Queues a run and waits for its end. Rejects with store.unavailable once the store has failed for long. */
  async queue(sessionKey: string, message: string): Promise<RunEnd> {
    const id = randomUUID();
    const ended = new Promise<RunEnd>((end, fail) => {
      this.#followed.set(id, { state: "queued", revision: undefined, end, fail });
    });
    await this.#insist(() => this.#create(id, sessionKey, message)).catch((error) => this.#settle(id, { error }));
    this.#lookSoon();
    return ended;
  }

  /** Cancels runs in these states; one that the store cannot be asked to cancel is left alone. */
  async cancel(states: readonly OpenState[]): Promise<void> {
    const ids = [...this.#followed].filter(([, { state }]) => states.includes(state)).map(([id]) => id);
    await Promise.all(ids.map((id) => this.#cancelOne(id, states)));
  }

  /** Ends runs that the batch left in a session before it was restarted; returns the pack that was not read. */
  async clear(sessionKey: string): Promise<RunFile | null> {
    return this.#insist(async () => {
      const [newest] = await this.#store.listRuns(null, 1, { sessionKey });
      if (newest === undefined) return null;
      await this.#end(newest.id, ["queued", "running"]);
      return this.#store.getFile(newest.id, PACK_NAME);
    });
  }

  /** Cancels what is left and closes the store. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#endListening?.();
    await this.cancel(["queued", "running"]);
    await this.#looking;
    await this.#removing;
    await this.#remove();
    await this.#store.close();
  }

  async #create(id: string, sessionKey: string, message: string): Promise<void> {
    // cancelled meanwhile, or created by a call whose answer was lost
    if (!this.#followed.has(id) || (this.#failingSince !== undefined && (await this.#store.getSummary(id)))) return;
    const now = this.#now();
    await this.#store.createRun({
      id,
      sessionKey,
      start: { origin: "batch" },
      terms: TERMS,
      createdAt: now,
      createdMark: now,
      maxWakeBytes: 0,
      compose: () => message,
    });
    if (!this.#followed.has(id)) await this.#end(id, ["queued", "running"]);
  }

  async #cancelOne(id: string, states: readonly OpenState[]): Promise<void> {
    const isEnded = await this.#end(id, states).catch(() => true);
    // one that is not there yet is never created
    const isAbsent = !isEnded && (await this.#store.getSummary(id).catch(() => null)) === null;
    if (isEnded || isAbsent) this.#settle(id, { end: { state: "cancelled" } });
  }

  async #end(id: string, from: readonly OpenState[]): Promise<boolean> {
    const { state: to, terminal, error } = cancelled(null);
    const now = this.#now();
    const ending = { from, to, terminal, error, finishedAt: now, endedMark: now };
    return this.#store.endRun(id, ending, NO_EVENTS, LIMITS);
  }

  #lookSoon(): void {
    this.#isLookDue = true;
    this.#looking ??= this.#lookAll().finally(() => {
      this.#looking = undefined;
    });
  }

  async #lookAll(): Promise<void> {
    while (this.#isLookDue && this.#followed.size > 0) {
      this.#isLookDue = false;
      try {
        await this.#insist(() => this.#look());
      } catch (error) {
        for (const id of this.#followed.keys()) this.#settle(id, { error });
      }
    }
  }

  async #look(): Promise<void> {
    const known = [...this.#followed].filter(([, { revision }]) => revision !== undefined).map(([id]) => id);
    const revisions = await this.#store.revisions([...this.#followed.keys()]);
    const changed = [...revisions].filter(([id, revision]) => this.#followed.get(id)?.revision !== revision);
    await Promise.all(changed.map(([id, revision]) => this.#read(id, revision)));
    for (const id of known) if (!revisions.has(id)) this.#settle(id, { end: { state: "gone" } });
    if (changed.length > 0) this.#changed();
  }

  async #read(id: string, revision: string): Promise<void> {
    const status = await this.#store.getStatus(id, 1);
    const followed = this.#followed.get(id);
    if (status === null || followed === undefined) return;
    const { state, terminal, error } = status;
    if (state === "queued" || state === "running") {
      followed.state = state;
      followed.revision = revision;
      return;
    }
    const { response } = JSON.parse(terminal?.data ?? "{}") as { response?: string };
    const pack = status.files.find(({ name }) => name === PACK_NAME);
    this.#settle(id, { end: { state, response, pack, error } });
  }

  #settle(id: string, { end, error }: { readonly end?: RunEnd; readonly error?: unknown }): void {
    const followed = this.#followed.get(id);
    this.#followed.delete(id);
    if (end !== undefined && this.#ended.push(id) >= REMOVED_AT_ONCE) this.#removing = this.#remove();
    if (end === undefined) followed?.fail(error);
    else followed?.end(end);
  }

  // Retention counts runs: a thousand of a batch would displace those of hooks.
  /** Removes runs that are no longer needed; runs of hooks are kept up to their limit. */
  async #remove(): Promise<void> {
    const ids = this.#ended;
    this.#ended = [];
    // the retention of a front end removes what stays
    await this.#store.removeRuns(ids).catch(() => undefined);
  }

  /** Tries again until the store has failed for too long. */
  async #insist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await work();
        this.#failingSince = undefined;
        return result;
      } catch (cause) {
        this.#failingSince ??= performance.now();
        const isOver = performance.now() - this.#failingSince >= this.#patienceMs;
        if (isOver) throw storeFailed(cause);
        await sleep(RETRY_MS);
      }
    }
  }
}

function storeFailed(cause: unknown): LatentkitError {
  const reason = cause instanceof Error && cause.cause instanceof Error ? ` (${cause.cause.message})` : "";
  const sentence = `Cannot reach the store${reason}. Run the same command with --resume to continue.`;
  return new LatentkitError("store.unavailable", sentence, {}, { cause });
}
