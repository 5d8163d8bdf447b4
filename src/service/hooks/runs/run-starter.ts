import { randomUUID } from "node:crypto";
import type { RunGraph } from "../../agent.js";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import type { RunOrigin } from "../run.js";
import { type NewKey, type Reply, replyOf, type StoredReply } from "../store/store.js";
import { backlogLimits, composeMessage, TOO_MANY_PENDING } from "./pending-wakes.js";
import { full, type Queue } from "./queue/run-queue.js";
import { checkPayload, type Idempotency, Replies } from "./replies.js";
import type { RunContext } from "./run-context.js";
import { type Terms, termsOf } from "./terms.js";

export interface StartRequest extends Terms {
  readonly idempotency?: Idempotency;
  /** Called once where no stored reply exists, before the queue is checked; throws to refuse (start rates). */
  readonly admit?: () => void;
  /** UUID of the run, which no other run has. Default: a random one. */
  readonly id?: string;
  readonly origin: "agent" | "wake" | "comfy";
  readonly message: string;
  readonly name?: string;
  readonly sessionKey: string;
  /** Default: the agent's default graph, if it has graphs. */
  readonly graph?: RunGraph;
  /** Trace context of the request: the agent's run has it. */
  readonly traceparent?: string;
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

interface Creation {
  readonly id?: string;
  readonly origin: RunOrigin;
  readonly sessionKey: string;
  readonly name: string | null;
  readonly terms: ReturnType<typeof termsOf>;
  readonly createdMark: number;
  readonly graph?: RunGraph;
  readonly traceparent?: string;
  /** null: only where wakes are pending. */
  readonly message: string | null;
}

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

  async start(request: StartRequest): Promise<Started> {
    const { id, origin, sessionKey, message, name = null, graph, traceparent, idempotency } = request;
    const createdMark = this.#context.mark();
    const terms = termsOf(request, this.#limits, createdMark);
    const creation = { id, origin, sessionKey, name, message, graph, traceparent, terms, createdMark };
    return this.#replies.once(idempotency, replayedRun, async (key) => {
      request.admit?.();
      const created = await this.#create(creation, key);
      if (created === null) throw new HookError("internal");
      return created.started;
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
    const common = { origin: "heartbeat", name: null, message: null, terms, createdMark } as const;
    for (const session of sessions) {
      try {
        const created = await this.#create({ ...common, sessionKey: session });
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
    const { agent, store, clock, observer } = this.#context;
    const {
      message,
      terms,
      graph = agent.graphs?.default,
      sessionKey,
      origin,
      name,
      createdMark,
      traceparent,
    } = creation;
    const reservation = this.#queue.reserve(sessionKey, terms.dueMark !== null);
    try {
      const id = creation.id ?? this.#newId();
      const compose = (pending: readonly string[]) => composeMessage(pending, message);
      // a run stores its message until it is swept: no more than a request may bring
      const maxWakeBytes = this.#limits.body_bytes;
      const { mostQueued } = this.#queue;
      const own = { id, sessionKey, origin, name, graph, traceparent, createdMark, createdAt: clock.now() };
      const run = { ...own, ...terms, mostQueued, maxWakeBytes, compose };
      const result = await store.createRun(run, key);
      if (result.kind === "empty") return null;
      if (result.kind === "full") throw new HookError("queue_full", full("session"));
      if (result.kind === "replayed") return { started: replayedRun(checkPayload(result.stored, key!)), wakes: 0 };
      reservation.release();
      observer.created?.({ id, origin });
      const { seq, priority, dueMark, deadlineMark } = result.run;
      const since = clock.monotonic();
      this.#queue.enqueue({ id, seq, sessionKey, priority, dueMark, deadlineMark, since });
      return { started: startedOf(replyOf(run), false), wakes: result.wakes };
    } finally {
      reservation.release();
    }
  }
}

const replayedRun = ({ reply }: StoredReply): Started => startedOf(reply, true);

function startedOf(reply: Reply, replayed: boolean): Started {
  if (!("run" in reply)) throw new HookError("idempotency_mismatch");
  return { createdMark: reply.run.createdAt, ...reply.run, replayed };
}

function replayedWake({ reply }: StoredReply): QueuedWake {
  if (!("wake" in reply)) throw new HookError("idempotency_mismatch");
  return { ...reply.wake, replayed: true };
}
