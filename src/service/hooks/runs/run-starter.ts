import { randomUUID } from "node:crypto";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import type { StartFields } from "../run.js";
import type { BacklogLimits, Room } from "../store/admission.js";
import {
  groupReplyOf,
  type NewKey,
  type NewRun,
  type Reply,
  replyOf,
  type Store,
  type StoredReply,
} from "../store/store.js";
import type { Queue } from "./queue/queue.js";
import type { RunContext } from "./run-context.js";
import { type Terms, termsOf } from "./terms.js";

/** A run that is asked for. */
export interface StartRequest extends StartFields, Terms {
  readonly origin: "agent" | "wake" | "comfy";
  /** UUID of the run, which no other run has. Default: a random one. */
  readonly id?: string;
  readonly message: string;
  /** Default: a session of its own. */
  readonly sessionKey?: string | undefined;
}

/** Conditions of a start. */
export interface StartGuard {
  readonly idempotency?: Idempotency | undefined;
  /** Called once where no stored reply exists, before the queue is checked; throws to refuse (start rates). */
  readonly admit?: () => void | Promise<void>;
}

/** One run of a group. */
export type GroupItem = Omit<StartRequest, "id">;

/** Facts of a group's response; a replay returns the first one's. */
export interface StartedGroup {
  readonly groupId: string;
  /** In the order of the items. */
  readonly runIds: readonly string[];
  readonly createdAt: number;
  /** Steady ms, as `Runs.now`: for expiry. */
  readonly createdMark: number;
  /** Steady ms before which the last of them does not start; absent: at once. */
  readonly dueMark?: number;
  readonly replayed: boolean;
}

export interface WakeRequest {
  readonly idempotency?: Idempotency;
  readonly text: string;
  readonly sessionKey: string;
}

/** Facts of a start's response; a replay returns the first one's. */
export interface Started {
  readonly runId: string;
  readonly sessionKey: string;
  readonly createdAt: number;
  /** Steady ms, as `Runs.now`: for expiry. */
  readonly createdMark: number;
  /** Steady ms before which the run does not start; absent: at once. */
  readonly dueMark?: number;
  readonly replayed: boolean;
}

/** Facts of a queued wake's response; a replay returns the first one's. */
export interface QueuedWake {
  readonly sessionKey: string;
  readonly chatId: number;
  readonly eventId: number;
  /** Pending events of the session, this one included. */
  readonly pending: number;
  readonly replayed: boolean;
}

export interface HeartbeatResult {
  readonly runs: readonly { readonly runId: string; readonly sessionKey: string; readonly events: number }[];
  /** Sessions whose queue was full: their events stay pending. */
  readonly skipped: readonly string[];
}

/** A run before it has a place; a message of null: only where wakes are pending. */
type Creation = Pick<NewRun, "id" | "sessionKey" | "start" | "terms" | "createdMark"> & {
  readonly message: string | null;
};

const HEARTBEAT: StartFields = { origin: "heartbeat" };

export interface StarterOptions {
  readonly limits: Limits;
  /** Random UUID v4 of a new run. */
  readonly newId?: () => string;
}

/** Creates runs: admits a request, stores the run with the wakes it takes, and puts it in the queue. */
export class RunStarter {
  readonly #context: RunContext;
  readonly #queue: Queue;
  readonly #limits: Limits;
  readonly #newId: () => string;
  readonly #replies: Replies;

  constructor(context: RunContext, queue: Queue, { limits, newId = randomUUID }: StarterOptions) {
    this.#context = context;
    this.#queue = queue;
    this.#limits = limits;
    this.#newId = newId;
    this.#replies = new Replies(context.store, context.mark, limits.idempotency_hours);
  }

  async start(request: StartRequest, { idempotency, admit }: StartGuard = {}): Promise<Started> {
    const createdMark = this.#context.mark();
    const terms = termsOf(request, this.#limits, createdMark);
    return this.#replies.once(idempotency, replayedRun, async (key) => {
      await admit?.();
      const { id = this.#newId(), sessionKey = `hook:${id}`, message } = request;
      const created = await this.#create({ id, sessionKey, start: request, terms, message, createdMark }, key);
      if (created === null) throw new HookError("internal");
      return created.started;
    });
  }

  // decision 296
  async startGroup(items: readonly GroupItem[], { idempotency, admit }: StartGuard = {}): Promise<StartedGroup> {
    const createdMark = this.#context.mark();
    const groupId = this.#newId();
    const creations = items.map((item, index): Creation => {
      const { message, sessionKey = `group:${groupId}:${index}` } = item;
      const terms = ofItem(index, () => termsOf(item, this.#limits, createdMark));
      return { id: this.#newId(), sessionKey, start: item, terms, message, createdMark };
    });
    return this.#replies.once(idempotency, replayedGroup, async (key) => {
      await admit?.();
      return this.#createGroup(groupId, creations, key);
    });
  }

  async queueWake(request: WakeRequest): Promise<QueuedWake> {
    const { sessionKey, text, idempotency } = request;
    const wake = { sessionKey, text, limits: backlogLimits(this.#limits) };
    return this.#replies.once(idempotency, replayedWake, async (key) => {
      const result = await this.#context.store.addWake(wake, key);
      if (result.kind === "replayed") return replayedWake(checkPayload(result.stored, key!));
      if (result.kind === "full") throw new HookError("queue_full", TOO_MANY_PENDING[result.scope]);
      const { chatId, eventId, pending } = result;
      return { sessionKey, chatId, eventId, pending, replayed: false };
    });
  }

  async heartbeat({ sessionKey }: { sessionKey?: string } = {}): Promise<HeartbeatResult> {
    const runs: HeartbeatResult["runs"][number][] = [];
    const skipped: string[] = [];
    const sessions = sessionKey === undefined ? await this.#context.store.pendingSessions() : [sessionKey];
    const createdMark = this.#context.mark();
    const terms = termsOf({}, this.#limits, createdMark);
    const common = { start: HEARTBEAT, message: null, terms, createdMark };
    for (const session of sessions) {
      try {
        const created = await this.#create({ ...common, id: this.#newId(), sessionKey: session });
        if (created !== null) {
          runs.push({ runId: created.started.runId, sessionKey: session, events: created.wakes });
        }
      } catch (error) {
        if (!(error instanceof HookError && error.kind === "queue_full")) throw error;
        skipped.push(session);
      }
    }
    return { runs, skipped };
  }

  /** Null where there was nothing to run. */
  async #create(creation: Creation, key?: NewKey): Promise<{ started: Started; wakes: number } | null> {
    return this.#queue.admit(1, async (room) => {
      const run = this.#newRun(creation, room);
      const result = await this.#context.store.createRun(run, key);
      if (result.kind === "empty") return null;
      if (result.kind === "full") throw new HookError("queue_full", full(result.scope));
      if (result.kind === "replayed") return { started: replayedRun(checkPayload(result.stored, key!)), wakes: 0 };
      this.#enqueue(run, result.seq);
      return { started: startedOf(replyOf(run), false), wakes: result.wakes };
    });
  }

  async #createGroup(id: string, creations: readonly Creation[], key?: NewKey): Promise<StartedGroup> {
    return this.#queue.admit(creations.length, async (room) => {
      const group = { id, runs: creations.map((creation) => this.#newRun(creation, room)) };
      const result = await this.#context.store.createGroup(group, key);
      if (result.kind === "full") throw new HookError("queue_full", full(result.scope));
      if (result.kind === "replayed") return replayedGroup(checkPayload(result.stored, key!));
      for (const [index, run] of group.runs.entries()) this.#enqueue(run, result.seqs[index]!);
      return startedGroupOf(groupReplyOf(group), false);
    });
  }

  #newRun({ id, sessionKey, start, terms, createdMark, message }: Creation, room: Room): NewRun {
    const { agent, clock } = this.#context;
    // no spread: every start pays for it
    return {
      id,
      sessionKey,
      start,
      terms,
      graph: start.graph ?? agent.graphs?.default,
      room,
      createdAt: clock.now(),
      createdMark,
      // a run stores its message until it is swept: no more than a request may bring
      maxWakeBytes: this.#limits.body_bytes,
      compose: (pending) => composeMessage(pending, message),
    };
  }

  #enqueue(run: NewRun, seq: number): void {
    this.#context.observer.created?.({ id: run.id, origin: run.start.origin });
    this.#queue.created(run, seq);
  }
}

const full = (scope: "session" | "service") => `the queue of this ${scope} is full, try again later`;

/** Names the item in what is wrong with it. */
export function ofItem<T>(index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof HookError)) throw error;
    throw new HookError(error.kind, `items.${index}: ${error.message}`, { cause: error.cause });
  }
}

const replayedRun = ({ reply }: StoredReply): Started => startedOf(reply, true);

function startedOf(reply: Reply, replayed: boolean): Started {
  if (!("run" in reply)) throw new HookError("idempotency_mismatch");
  return { ...reply.run, replayed };
}

const replayedGroup = ({ reply }: StoredReply): StartedGroup => startedGroupOf(reply, true);

function startedGroupOf(reply: Reply, replayed: boolean): StartedGroup {
  if (!("group" in reply)) throw new HookError("idempotency_mismatch");
  return { ...reply.group, replayed };
}

function replayedWake({ reply }: StoredReply): QueuedWake {
  if (!("wake" in reply)) throw new HookError("idempotency_mismatch");
  return { ...reply.wake, replayed: true };
}

/** Scope of a stored reply: it is replayed for the same token, endpoint and key. */
export interface Idempotency {
  readonly key: string;
  /** Digest of the token, never the token. */
  readonly tokenId: string;
  readonly endpoint: "agent" | "wake" | "group" | `in/${string}` | `again/${string}` | "v2/jobs" | "prompt";
  /** Digest of the validated payload: another one under the same key is refused. */
  readonly payloadHash: string;
}

/** Replies to requests with idempotency keys. */
class Replies {
  readonly #store: Store;
  readonly #mark: () => number;
  readonly #lifetimeMs: number;
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(store: Store, mark: () => number, lifetimeHours: number) {
    this.#store = store;
    this.#mark = mark;
    this.#lifetimeMs = lifetimeHours * 3600_000;
  }

  /**
   * Returns the stored reply under the request's key, or what `create` returns; requests with the same key take turns.
   * Fails with idempotency_mismatch.
   */
  async once<T>(
    request: Idempotency | undefined,
    replay: (stored: StoredReply) => T,
    create: (key: NewKey | undefined) => Promise<T>,
  ): Promise<T> {
    if (request === undefined) return create(undefined);
    const scope = scopeOf(request);
    while (this.#inFlight.has(scope)) await Promise.allSettled([this.#inFlight.get(scope)]);
    const work = this.#findOrCreate(request, scope, replay, create);
    this.#inFlight.set(scope, work);
    try {
      return await work;
    } finally {
      this.#inFlight.delete(scope);
    }
  }

  async #findOrCreate<T>(
    request: Idempotency,
    scope: string,
    replay: (stored: StoredReply) => T,
    create: (key: NewKey) => Promise<T>,
  ): Promise<T> {
    const nowMark = this.#mark();
    const stored = await this.#store.findReply(scope, nowMark);
    if (stored !== null) return replay(checkPayload(stored, request));
    return create({ scope, payloadHash: request.payloadHash, nowMark, expiresMark: nowMark + this.#lifetimeMs });
  }
}

/** Refuses a reply to another payload. */
function checkPayload(stored: StoredReply, { payloadHash }: { payloadHash: string }): StoredReply {
  if (stored.payloadHash !== payloadHash) throw new HookError("idempotency_mismatch");
  return stored;
}

const scopeOf = ({ tokenId, endpoint, key }: Idempotency) => `${tokenId} ${endpoint} ${key}`;

// decisions 142, 143
const TOO_MANY_PENDING: Record<keyof BacklogLimits, string> = {
  session: "this session has too many pending events, or too large ones, try again later",
  service: "the service has too many pending events, or too large ones, try again later",
};

const backlogLimits = (limits: Limits): BacklogLimits => ({
  session: { wakes: limits.pending_wakes_per_session, bytes: limits.pending_wake_bytes_per_session },
  service: { wakes: limits.pending_wakes, bytes: limits.pending_wake_bytes },
});

/** The message of a run that takes pending texts, a line each whatever line breaks they hold; null for an empty one. */
function composeMessage(pending: readonly string[], message: string | null): string | null {
  const lines = pending.map((text) => `System event: ${text.replace(/[\r\n\u2028\u2029]+/g, " ")}`);
  if (message !== null) lines.push(message);
  return lines.length === 0 ? null : lines.join("\n");
}
