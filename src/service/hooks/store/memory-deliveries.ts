import type { RunSummary } from "../run.js";
import {
  type Delivery,
  type DeliveryFilter,
  FORGOTTEN_MS,
  type HeldDelivery,
  type Outbox,
  type Receiver,
  receiversOf,
  withAttempt,
} from "./deliveries.js";
import type { Mutable } from "./memory-runs.js";

interface Row {
  readonly delivery: Mutable<Delivery>;
  token: number;
  dueMark: number;
  sinceMark: number;
  settledMark: number | null;
}

/** The deliveries of a memory store: what it shows of them, and what it adds and sweeps. */
export function createMemoryOutbox() {
  const rows = new Map<number, Row>();
  /** Pending ones by endpoint: the log may be long. */
  const pending = new Map<string, Set<Row>>();
  const gone = new Set<string>();
  let lastId = 0;
  const pendingOf = (endpoint: string): Set<Row> => {
    const set = pending.get(endpoint) ?? new Set();
    pending.set(endpoint, set);
    return set;
  };
  const setState = (row: Row, state: Delivery["state"], nowMark: number) => {
    row.delivery.state = state;
    row.settledMark = state === "pending" ? null : nowMark;
    if (state === "pending") pendingOf(row.delivery.endpoint).add(row);
    else pendingOf(row.delivery.endpoint).delete(row);
  };
  const keyOf = ({ endpoint, target }: Pick<Delivery, "endpoint" | "target">) => `${endpoint} ${target}`;

  /** Adds the deliveries of a run that has ended. */
  const add = (run: RunSummary, endedMark: number, receivers: readonly Receiver[] | undefined): void => {
    for (const { endpoint, target } of receiversOf(run, receivers)) {
      lastId += 1;
      const delivery: Delivery = {
        id: lastId,
        endpoint,
        target,
        runId: run.id,
        sessionKey: run.sessionKey,
        endedMark,
        runState: run.state as Delivery["runState"],
        finishedAt: run.finishedAt!,
        state: "pending",
        attempts: [],
      };
      const row = { delivery, token: 0, dueMark: endedMark, sinceMark: endedMark, settledMark: null };
      rows.set(lastId, row);
      setState(row, gone.has(keyOf(delivery)) ? "dead" : "pending", endedMark);
    }
  };
  const store: Outbox = {
    claimDeliveries: async ({ endpoints, leaseMs, nowMark }) =>
      endpoints.flatMap(({ endpoint, count }) => {
        const due = [...(pending.get(endpoint) ?? [])]
          .filter(({ dueMark }) => dueMark <= nowMark)
          .sort((a, b) => a.dueMark - b.dueMark || a.delivery.id - b.delivery.id)
          .slice(0, count);
        return due.map((row): HeldDelivery => {
          row.token += 1;
          row.dueMark = nowMark + leaseMs;
          return { ...row.delivery, token: row.token, ageMs: nowMark - row.sinceMark };
        });
      }),
    settleDelivery: async (id, token, { state, attempt, retryMs = 0, isGone = false, nowMark }) => {
      const row = rows.get(id);
      if (row === undefined || row.token !== token || row.delivery.state !== "pending") return false;
      row.delivery.attempts = withAttempt(row.delivery.attempts, attempt);
      row.dueMark = nowMark + retryMs;
      setState(row, state, nowMark);
      const key = keyOf(row.delivery);
      if (state === "delivered") gone.delete(key);
      if (isGone) {
        gone.add(key);
        for (const other of [...pendingOf(row.delivery.endpoint)]) {
          if (keyOf(other.delivery) === key) setState(other, "dead", nowMark);
        }
      }
      return true;
    },
    getDelivery: async (id) => copyOf(rows.get(id)),
    listDeliveries: async (before, limit, filter) =>
      [...rows.values()]
        .filter(({ delivery }) => (before === null || delivery.id < before) && matches(delivery, filter))
        .slice(-limit)
        .reverse()
        .map(({ delivery }) => ({ ...delivery })),
    countPendingDeliveries: async (most) => {
      const count = [...pending.values()].reduce((sum, { size }) => sum + size, 0);
      return Math.min(most, count);
    },
    redeliver: async (id, nowMark) => {
      const row = rows.get(id);
      if (row === undefined) return null;
      row.dueMark = nowMark;
      row.sinceMark = nowMark;
      setState(row, "pending", nowMark);
      return copyOf(row);
    },
  };
  /** Removes deliveries that ended until `endedBefore`, and forgotten ones; at most `budget`. Returns how many. */
  const sweep = (endedBefore: number, most: number, budget: number): number => {
    let removed = 0;
    const ended = [...rows.values()].filter(({ settledMark }) => settledMark !== null);
    // several may have ended in one millisecond
    ended.sort((a, b) => b.settledMark! - a.settledMark! || b.delivery.id - a.delivery.id);
    const surplus = new Set(ended.slice(most));
    for (const [id, row] of rows) {
      if (removed >= budget) break;
      const isDue = surplus.has(row) || (row.settledMark ?? row.sinceMark + FORGOTTEN_MS) <= endedBefore;
      if (!isDue) continue;
      rows.delete(id);
      pendingOf(row.delivery.endpoint).delete(row);
      removed += 1;
    }
    return removed;
  };
  return { store, add, sweep };
}

const copyOf = (row: Row | undefined): Delivery | null => (row === undefined ? null : { ...row.delivery });

const matches = (delivery: Delivery, { endpoint, state, runId }: DeliveryFilter = {}): boolean =>
  (endpoint === undefined || delivery.endpoint === endpoint) &&
  (state === undefined || delivery.state === state) &&
  (runId === undefined || delivery.runId === runId);
