import type { RunSummary, TerminalState } from "../run.js";

export const DELIVERY_STATES = ["pending", "delivered", "dead"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Time after which a pending delivery may be swept beside ended ones: no process has its endpoint. */
export const FORGOTTEN_MS = 48 * 3600_000;

/** Attempts that a delivery keeps in its log. */
const MOST_ATTEMPTS = 20;

/** An endpoint that may be told of a run's end. */
export interface Receiver {
  readonly endpoint: string;
  /** Fingerprint of the endpoint's address: one that is gone stays so until its address changes. */
  readonly target: string;
  /** Beginning of the sessions that it is told of. */
  readonly sessionPrefix: string;
}

/** One request to an endpoint. */
export interface Attempt {
  /** Wall clock ms. */
  readonly at: number;
  readonly ms: number;
  /** null: there was no response. */
  readonly status: number | null;
  /** null: it was delivered. */
  readonly error: string | null;
}

/** The news of one run's end for one endpoint. */
export interface Delivery {
  /** Order of creation; the cursor of lists. */
  readonly id: number;
  readonly endpoint: string;
  readonly target: string;
  readonly runId: string;
  readonly sessionKey: string;
  readonly runState: TerminalState;
  /** End of the run: wall clock ms, and steady ms. */
  readonly finishedAt: number;
  readonly endedMark: number;
  /** dead: given up. */
  readonly state: DeliveryState;
  /** The last ones, oldest first. */
  readonly attempts: readonly Attempt[];
}

/** A delivery that one process holds until the end of its lease. */
export interface HeldDelivery extends Delivery {
  /** Fencing token: it grows with each claim. */
  readonly token: number;
  /** Time since the delivery was first due. */
  readonly ageMs: number;
}

/** A request for deliveries that are due. Steady ms; a store of several processes goes by a clock of its own. */
export interface DeliveryClaim {
  readonly endpoints: readonly { readonly endpoint: string; readonly count: number }[];
  /** Time after which a delivery that was not settled is due again. */
  readonly leaseMs: number;
  readonly nowMark: number;
}

/** Result of an attempt. */
export interface Settlement {
  readonly state: DeliveryState;
  /** Absent: there was none, since the process stops. */
  readonly attempt?: Attempt;
  /** Time to the next attempt of a pending one. */
  readonly retryMs?: number;
  /** With dead: the endpoint wants no more. Its pending deliveries die too. */
  readonly isGone?: boolean;
  readonly nowMark: number;
}

/** Selects the deliveries of a list: those that match every field that is set. */
export interface DeliveryFilter {
  readonly endpoint?: string;
  readonly state?: DeliveryState;
  readonly runId?: string;
}

/**
 * Deliveries of runs' ends to webhooks: `endRun` writes them in its transaction. The process that claims one
 * may die: each is delivered at least once, maybe twice.
 */
export interface Outbox {
  /** Returns deliveries that are due, for each endpoint at most its count, longest due first. */
  claimDeliveries(claim: DeliveryClaim): Promise<HeldDelivery[]>;
  /** Logs an attempt; false where the delivery was claimed anew since, or has ended. Success ends an endpoint's being gone. */
  settleDelivery(id: number, token: number, settlement: Settlement): Promise<boolean>;
  getDelivery(id: number): Promise<Delivery | null>;
  /** Newest first; below the id `before`, unless it is null. */
  listDeliveries(before: number | null, limit: number, filter?: DeliveryFilter): Promise<Delivery[]>;
  /** Number of the pending ones, at most `most`. */
  countPendingDeliveries(most: number): Promise<number>;
  /** Makes a delivery pending and due at once, whatever its state; null where there is none. */
  redeliver(id: number, nowMark: number): Promise<Delivery | null>;
}

/** Receivers of a run's end. */
export const receiversOf = (
  { sessionKey, origin }: Pick<RunSummary, "sessionKey" | "origin">,
  receivers: readonly Receiver[] = [],
): Receiver[] =>
  // a batch waits for its runs itself
  origin === "batch" ? [] : receivers.filter(({ sessionPrefix }) => sessionKey.startsWith(sessionPrefix));

export const withAttempt = (attempts: readonly Attempt[], attempt: Attempt | undefined): readonly Attempt[] =>
  attempt === undefined ? attempts : [...attempts, attempt].slice(-MOST_ATTEMPTS);
