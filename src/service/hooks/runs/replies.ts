import { HookError } from "../hook-error.js";
import type { NewKey, Store, StoredAnswer } from "../store/store.js";
import type { Idempotency } from "../types.js";

/** Answers given under idempotency keys. */
export class Answers {
  readonly #store: Store;
  readonly #mark: () => number;
  readonly #keptMs: number;
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(store: Store, mark: () => number, keptHours: number) {
    this.#store = store;
    this.#mark = mark;
    this.#keptMs = keptHours * 3600_000;
  }

  /**
   * The stored answer under the request's key, or what `create` makes; requests with the same key take turns.
   * Fails with idempotency_mismatch.
   */
  async once<T>(
    request: Idempotency | undefined,
    replay: (stored: StoredAnswer) => T,
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
    replay: (stored: StoredAnswer) => T,
    create: (key: NewKey) => Promise<T>,
  ): Promise<T> {
    const nowMark = this.#mark();
    const stored = await this.#store.findAnswer(scope, nowMark);
    if (stored !== null) return replay(checked(stored, request));
    return create({ scope, payloadHash: request.payloadHash, nowMark, expiresMark: nowMark + this.#keptMs });
  }
}

/** Refuses an answer that was given to another payload. */
export function checked(stored: StoredAnswer, { payloadHash }: { payloadHash: string }): StoredAnswer {
  if (stored.payloadHash !== payloadHash) throw new HookError("idempotency_mismatch");
  return stored;
}

const scopeOf = ({ tokenId, endpoint, key }: Idempotency) => `${tokenId} ${endpoint} ${key}`;
