import { HookError } from "../hook-error.js";
import type { NewKey, Store, StoredReply } from "../store/store.js";

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
export class Replies {
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
export function checkPayload(stored: StoredReply, { payloadHash }: { payloadHash: string }): StoredReply {
  if (stored.payloadHash !== payloadHash) throw new HookError("idempotency_mismatch");
  return stored;
}

const scopeOf = ({ tokenId, endpoint, key }: Idempotency) => `${tokenId} ${endpoint} ${key}`;
