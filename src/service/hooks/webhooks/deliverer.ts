import { type Acknowledgement, NotifyFault, notify } from "../../../io/http/post.js";
import { type Clock, jittered, type Timer } from "../clock.js";
import type { HookLog, Limits } from "../hook-config.js";
import type { Delivery, HeldDelivery, Outbox, Settlement } from "../store/deliveries.js";
import type { Endpoint } from "./endpoints.js";

/** Interval at which the store is asked for deliveries that are due, also those of other processes. */
const POLL_MS = 2000;
/** Interval of counts, of which one of as many as are counted takes some 20 ms of the store. */
const COUNT_MS = 10_000;
/** Pending deliveries beyond these are not counted. */
const MOST_COUNTED = 100_000;
/** Time beyond a request's limit after which a delivery is taken for lost with its process. */
const LEASE_MARGIN_MS = 45_000;
const GONE = 410;

export type AttemptResult = "delivered" | "failed" | "dead" | "gone";

export interface DelivererOptions {
  readonly endpoints: readonly Endpoint[];
  readonly store: Outbox;
  readonly clock: Clock;
  /** Steady ms (clock.ts). */
  readonly mark: () => number;
  readonly limits: Pick<Limits, "webhook_hours" | "webhook_seconds" | "webhook_requests">;
  readonly log: HookLog;
  /** Resolves when the store may be used. */
  opened(): Promise<void>;
  /** Returns the body of a delivery, JSON. */
  bodyOf(delivery: Delivery): Promise<string>;
  attempted?(result: AttemptResult, seconds: number): void;
  /** From 0 to 1. */
  readonly random?: () => number;
}

/** Id of the message of a run's end: the same in each attempt and for each endpoint, so that receivers know repetitions. */
export const messageId = ({ runId, runState }: Delivery): string => `${runId}_${runState}`;

/** Sends the deliveries of a store to their endpoints, each until it is acknowledged. Runs never wait for it. */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #stopping = new AbortController();
  readonly #underway = new Map<string, Set<Promise<void>>>();
  #timer: Timer | undefined;
  #polling: Promise<void> | undefined;
  #isWoken = false;
  /** Number of pending deliveries of the store, as last counted. */
  pending = 0;
  /** Monotonic ms. */
  #countFrom = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** Looks for deliveries now, and again at intervals. */
  wake(): void {
    if (this.#stopping.signal.aborted || this.#options.endpoints.length === 0) return;
    this.#isWoken = true;
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
  }

  /** Ends the requests that are under way: their deliveries are due at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.cancel();
    await this.#polling;
    await Promise.all([...this.#underway.values()].flatMap((attempts) => [...attempts]));
  }

  async #poll(): Promise<void> {
    this.#timer?.cancel();
    try {
      await this.#options.opened();
      while (this.#isWoken && !this.#stopping.signal.aborted) {
        this.#isWoken = false;
        await this.#claim();
      }
      await this.#count();
    } catch (error) {
      this.#options.log.error({ err: error }, "webhooks: the store is unavailable, trying again");
    }
    if (!this.#stopping.signal.aborted) this.#timer = this.#options.clock.setTimer(POLL_MS, () => this.wake());
  }

  async #claim(): Promise<void> {
    const { store, endpoints, limits, mark } = this.#options;
    const free = endpoints
      .map(({ endpoint }) => ({ endpoint, count: limits.webhook_requests - this.#attemptsTo(endpoint).size }))
      .filter(({ count }) => count > 0);
    if (free.length === 0) return;
    const leaseMs = limits.webhook_seconds * 1000 + LEASE_MARGIN_MS;
    for (const held of await store.claimDeliveries({ endpoints: free, leaseMs, nowMark: mark() })) {
      const endpoint = endpoints.find(({ endpoint }) => endpoint === held.endpoint)!;
      const attempts = this.#attemptsTo(held.endpoint);
      const attempt = this.#attempt(endpoint, held).finally(() => {
        attempts.delete(attempt);
        this.wake();
      });
      attempts.add(attempt);
    }
  }

  async #count(): Promise<void> {
    const { store, clock } = this.#options;
    if (clock.monotonic() < this.#countFrom || this.#stopping.signal.aborted) return;
    this.#countFrom = clock.monotonic() + COUNT_MS;
    this.pending = await store.countPendingDeliveries(MOST_COUNTED);
  }

  #attemptsTo(endpoint: string): Set<Promise<void>> {
    const attempts = this.#underway.get(endpoint) ?? new Set();
    this.#underway.set(endpoint, attempts);
    return attempts;
  }

  /** Never rejects. */
  async #attempt(endpoint: Endpoint, held: HeldDelivery): Promise<void> {
    const { store, clock, log, mark, attempted } = this.#options;
    const facts = { endpoint: held.endpoint, delivery: held.id, run_id: held.runId };
    try {
      const [at, since] = [clock.now(), clock.monotonic()];
      const result = await this.#send(endpoint, held, at);
      const ms = Math.round(clock.monotonic() - since);
      if (result instanceof NotifyFault && this.#stopping.signal.aborted) {
        await store.settleDelivery(held.id, held.token, { state: "pending", retryMs: 0, nowMark: mark() });
        return;
      }
      const settlement = this.#settlementOf(held, result, { at, ms });
      await store.settleDelivery(held.id, held.token, settlement);
      const name = settlement.isGone ? "gone" : settlement.state === "pending" ? "failed" : settlement.state;
      attempted?.(name, ms / 1000);
      const { status, error } = settlement.attempt!;
      if (name === "delivered") log.info({ ...facts, status, ms }, "webhook delivered");
      else log.warn({ ...facts, status, error, retry_ms: settlement.retryMs }, `webhook ${name}`);
    } catch (error) {
      // its lease makes it due again
      log.error({ ...facts, err: error }, "a webhook result could not be stored, it will be sent again");
    }
  }

  async #send(endpoint: Endpoint, held: HeldDelivery, at: number): Promise<Acknowledgement | NotifyFault> {
    const { bodyOf, limits } = this.#options;
    const body = await bodyOf(held);
    const id = messageId(held);
    const seconds = Math.floor(at / 1000);
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(seconds),
      "webhook-signature": endpoint.sign(id, seconds, body),
    };
    const { url, isAllowed } = endpoint;
    const timeoutMs = limits.webhook_seconds * 1000;
    try {
      return await notify({ url, headers, body, isAllowed, timeoutMs, signal: this.#stopping.signal });
    } catch (error) {
      if (error instanceof NotifyFault) return error;
      throw error;
    }
  }

  #settlementOf(
    held: HeldDelivery,
    result: Acknowledgement | NotifyFault,
    { at, ms }: { at: number; ms: number },
  ): Settlement {
    const { clock, mark, limits, random } = this.#options;
    const nowMark = mark();
    const status = result instanceof NotifyFault ? null : result.status;
    const isDelivered = status !== null && status >= 200 && status < 300;
    const error = isDelivered ? null : result instanceof NotifyFault ? result.message : `status ${status}`;
    const attempt = { at, ms, status, error };
    if (isDelivered) return { state: "delivered", attempt, nowMark };
    if (status === GONE) return { state: "dead", attempt, isGone: true, nowMark };
    const asked = result instanceof NotifyFault ? 0 : retryAfterMs(result.status, result.retryAfter, clock.now());
    const leftMs = limits.webhook_hours * 3600_000 - held.ageMs - ms;
    if (leftMs <= 0) return { state: "dead", attempt, nowMark };
    const backOff = backOffMs({ ageMs: held.ageMs, before: held.attempts.length }, random);
    const retryMs = Math.min(Math.max(backOff, asked), leftMs);
    return { state: "pending", attempt, retryMs, nowMark };
  }
}

const FIRST_MS = 5000;
const LONGEST_MS = 6 * 3600_000;
/** Statuses with which Retry-After says when to come again. */
const BUSY: readonly number[] = [429, 503];

/**
 * Time to wait after an attempt: 5 s, then three times as long each time, 6 h at most. The age of the delivery bounds it
 * too, so that one that is sent again begins anew; `before`, the number of earlier attempts, does after an outage of the
 * service.
 *
 * @internal
 */
export function backOffMs({ ageMs, before }: { ageMs: number; before: number }, random?: () => number): number {
  let delay = FIRST_MS;
  for (let attempt = 0; attempt < before && delay < LONGEST_MS; attempt++) delay *= 3;
  delay = Math.min(delay, FIRST_MS + 2 * Math.max(0, ageMs), LONGEST_MS);
  return jittered(delay, random);
}

/** Time that a receiver asks for, 6 h at most; 0 where it does not. @internal */
export function retryAfterMs(status: number, header: string | undefined, nowMs: number): number {
  if (header === undefined || !BUSY.includes(status) || header.length > 64) return 0;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), LONGEST_MS);
}
