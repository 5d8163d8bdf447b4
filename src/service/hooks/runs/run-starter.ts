import { randomUUID } from "node:crypto";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import type { StartFields } from "../run.js";
import type { BacklogLimits, Room } from "../store/admission.js";
import {
  type GroupReply,
  groupReplyOf,
  type NewKey,
  type NewRun,
  type RunReply,
  replyOf,
  type StoredReply,
  type WakeReply,
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

/** A run, a group or a queued wake as its response has it; a replay returns the first response's facts. */
type Replied<Reply> = Reply & { readonly replayed: boolean };
export type Started = Replied<RunReply>;
export type StartedGroup = Replied<GroupReply>;
export type QueuedWake = Replied<WakeReply>;

export interface WakeRequest {
  readonly idempotency?: Idempotency | undefined;
  readonly text: string;
  readonly sessionKey: string;
}

export interface HeartbeatResult {
  readonly runs: readonly { readonly runId: string; readonly sessionKey: string; readonly events: number }[];
  /** Sessions whose queue was full: their events stay pending. */
  readonly skipped: readonly string[];
}

/** A run before it has a place; a message of null: only if wakes are pending. */
type Creation = Pick<NewRun, "id" | "sessionKey" | "start" | "terms" | "createdMark"> & {
  readonly message: string | null;
};

const HEARTBEAT: StartFields = { origin: "heartbeat" };

/** Creates runs: admits a request, stores the run with the wakes it takes, and puts it in the queue. */
export class RunStarter {
  readonly #context: RunContext;
  readonly #queue: Queue;
  readonly #limits: Limits;
  /** Requests with idempotency keys that are being answered. */
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(context: RunContext, queue: Queue, limits: Limits) {
    this.#context = context;
    this.#queue = queue;
    this.#limits = limits;
  }

  async start(request: StartRequest, { idempotency, admit }: StartGuard = {}): Promise<Started> {
    const createdMark = this.#context.mark();
    const terms = termsOf(request, this.#limits, createdMark);
    return this.#once("run", idempotency, async (key) => {
      await admit?.();
      const { id = randomUUID(), sessionKey = `hook:${id}`, message } = request;
      const created = await this.#create({ id, sessionKey, start: request, terms, message, createdMark }, key);
      if (created === null) throw new HookError("internal");
      return created.started;
    });
  }

  // Each item without a session gets its own, and a group counts as one start, or none could be large.
  async startGroup(items: readonly GroupItem[], { idempotency, admit }: StartGuard = {}): Promise<StartedGroup> {
    const createdMark = this.#context.mark();
    const groupId = randomUUID();
    const creations = items.map((item, index): Creation => {
      const { message, sessionKey = `group:${groupId}:${index}` } = item;
      const terms = ofItem(index, () => termsOf(item, this.#limits, createdMark));
      return { id: randomUUID(), sessionKey, start: item, terms, message, createdMark };
    });
    return this.#once("group", idempotency, async (key) => {
      await admit?.();
      return this.#createGroup(groupId, creations, key);
    });
  }

  async queueWake(request: WakeRequest): Promise<QueuedWake> {
    const { sessionKey, text, idempotency } = request;
    const wake = { sessionKey, text, limits: backlogLimits(this.#limits) };
    return this.#once("wake", idempotency, async (key) => {
      const result = await this.#context.store.addWake(wake, key);
      if (result.kind === "replayed") return replayed("wake", result.stored, key!);
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
        const created = await this.#create({ ...common, id: randomUUID(), sessionKey: session });
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
      if (result.kind === "replayed") return { started: replayed("run", result.stored, key!), wakes: 0 };
      this.#enqueue(run, result.seq);
      return { started: { ...replyOf(run).run, replayed: false }, wakes: result.wakes };
    });
  }

  async #createGroup(id: string, creations: readonly Creation[], key?: NewKey): Promise<StartedGroup> {
    return this.#queue.admit(creations.length, async (room) => {
      const group = { id, runs: creations.map((creation) => this.#newRun(creation, room)) };
      const result = await this.#context.store.createGroup(group, key);
      if (result.kind === "full") throw new HookError("queue_full", full(result.scope));
      if (result.kind === "replayed") return replayed("group", result.stored, key!);
      for (const [index, run] of group.runs.entries()) this.#enqueue(run, result.seqs[index]!);
      return { ...groupReplyOf(group).group, replayed: false };
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

  /**
   * Returns the stored reply under the request's key, or what `create` does; requests with the same key take turns. Fails
   * with idempotency_mismatch.
   */
  async #once<Kind extends ReplyKind>(
    kind: Kind,
    request: Idempotency | undefined,
    create: (key: NewKey | undefined) => Promise<Replied<Replies[Kind]>>,
  ): Promise<Replied<Replies[Kind]>> {
    if (request === undefined) return create(undefined);
    const { tokenId, endpoint, key, payloadHash } = request;
    const scope = `${tokenId} ${endpoint} ${key}`;
    while (this.#inFlight.has(scope)) await Promise.allSettled([this.#inFlight.get(scope)]);
    const findOrCreate = async () => {
      const nowMark = this.#context.mark();
      const expiresMark = nowMark + this.#limits.idempotency_hours * 3600_000;
      const stored = await this.#context.store.findReply(scope, nowMark);
      if (stored !== null) return replayed(kind, stored, { payloadHash });
      return create({ scope, payloadHash, nowMark, expiresMark });
    };
    const work = findOrCreate();
    this.#inFlight.set(scope, work);
    try {
      return await work;
    } finally {
      this.#inFlight.delete(scope);
    }
  }
}

interface Replies {
  readonly run: RunReply;
  readonly group: GroupReply;
  readonly wake: WakeReply;
}
type ReplyKind = keyof Replies;

/** A stored reply, which must be of this kind and to the same payload. */
function replayed<Kind extends ReplyKind>(
  kind: Kind,
  stored: StoredReply,
  { payloadHash }: Pick<NewKey, "payloadHash">,
): Replied<Replies[Kind]> {
  const reply: Replies[Kind] | undefined = (stored.reply as Partial<Replies>)[kind];
  if (reply === undefined || stored.payloadHash !== payloadHash) throw new HookError("idempotency_mismatch");
  return { ...reply, replayed: true };
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

/** Scope of a stored reply: it is replayed for the same token, endpoint and key. */
export interface Idempotency {
  readonly key: string;
  /** Digest of the token, never the token. */
  readonly tokenId: string;
  readonly endpoint: "agent" | "wake" | "group" | `in/${string}` | `again/${string}` | "v2/jobs" | "prompt";
  /** Digest of the validated payload: another one under the same key is refused. */
  readonly payloadHash: string;
}

// A pending event spends no rate of starts: it starts nothing. It is bounded by number and by bytes as stored.
// A run takes events up to `body_bytes`, always the oldest, and leaves the rest to the next run.
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
