import type { RunFilter, RunRow, RunSummary, StoredStatus } from "../run.js";
import { type Backlog, countFitting, exceededScope, wakeBytes } from "./admission.js";
import { LocalQueue, queuedRun } from "./local-queue.js";
import { createMemoryOutbox } from "./memory-deliveries.js";
import {
  addEvents,
  MemoryGroups,
  type MemoryRun,
  type Mutable,
  newRow,
  readEvents,
  terminalEvent,
} from "./memory-runs.js";
import { NO_EVENTS } from "./queue-store.js";
import {
  groupReplyOf,
  type NewKey,
  type NewRun,
  type Replayed,
  type Reply,
  replyOf,
  type Store,
  type StoredReply,
  type SweepRequest,
} from "./store.js";

interface Session {
  readonly id: number;
  runs: number;
  wakes: { readonly id: number; readonly text: string; readonly bytes: number }[];
  wakeBytes: number;
}

const NOTHING: Backlog = { wakes: 0, bytes: 0 };

/** Creates a store in the memory of this process: for tests and embedding. It never fails. */
export function createMemoryStore(): Store {
  const runs = new Map<string, MemoryRun>();
  const sessions = new Map<string, Session>();
  const replies = new Map<string, StoredReply & { readonly expiresMark: number }>();
  const lastIds = { session: 0, run: 0, wake: 0 };
  const pending: Mutable<Backlog> = { ...NOTHING };
  const outbox = createMemoryOutbox();
  const groups = new MemoryGroups();
  const queue = new LocalQueue();

  const sessionOf = (key: string): Session => {
    let session = sessions.get(key);
    if (session === undefined) {
      lastIds.session += 1;
      session = { id: lastIds.session, runs: 0, wakes: [], wakeBytes: 0 };
      sessions.set(key, session);
    }
    return session;
  };
  const findReply = (scope: string, nowMark: number): StoredReply | null => {
    const stored = replies.get(scope);
    return stored === undefined || stored.expiresMark <= nowMark ? null : stored;
  };
  /** Returns what `create` does, unless the reply of the key is stored. */
  const once = <T>(key: NewKey | undefined, create: () => T): T | Replayed => {
    const stored = key && findReply(key.scope, key.nowMark);
    return stored ? { kind: "replayed", stored } : create();
  };
  const saveReply = (key: NewKey | undefined, reply: Reply): void => {
    if (key === undefined) return;
    // deleted first: the map stays in order of expiry
    replies.delete(key.scope);
    replies.set(key.scope, { payloadHash: key.payloadHash, reply, expiresMark: key.expiresMark });
  };
  /** Null if there is nothing to run. */
  const createRun = (run: NewRun): { seq: number; wakes: number } | null => {
    const waiting = sessions.get(run.sessionKey)?.wakes ?? [];
    const sizes = waiting.map(({ bytes }) => bytes);
    const count = countFitting(sizes, run.maxWakeBytes);
    const message = run.compose(waiting.slice(0, count).map(({ text }) => text));
    if (message === null) return null;
    const session = sessionOf(run.sessionKey);
    const bytes = sizes.slice(0, count).reduce((sum, size) => sum + size, 0);
    session.wakes.splice(0, count);
    session.wakeBytes -= bytes;
    pending.wakes -= count;
    pending.bytes -= bytes;
    session.runs += 1;
    lastIds.run += 1;
    const row = newRow(run, lastIds.run, session.id, message);
    runs.set(run.id, { row, endedMark: null, events: [], bytes: 0, files: new Map(), progress: null });
    queue.add(queuedRun(run, row.seq));
    return { seq: row.seq, wakes: count };
  };
  const found = <T>(id: string, read: (run: MemoryRun) => T): T | null => {
    const run = runs.get(id);
    return run === undefined ? null : read(run);
  };
  const heldRun = (id: string, token: number | undefined) => {
    const run = runs.get(id);
    return run?.row.state === "running" && queue.isHeld(id, token) ? run : undefined;
  };
  const requeue = (run: MemoryRun) => {
    Object.assign(run.row, { state: "queued", startedAt: null });
    run.progress = null;
    queue.putBack(run.row.id);
  };

  const store: Store = {
    ...outbox.store,
    ...queue.reads(),
    openQueue: async (perSession) => {
      // a process that is gone left its runs here: another service of this process takes them over
      queue.open(perSession, [], []);
      return [...runs.values()].reduce((newest, { endedMark }) => Math.max(newest, endedMark ?? 0), 0);
    },
    claim: async (claim) =>
      queue.take(claim).map((taken) => {
        const run = runs.get(taken.id)!;
        taken.hasStarted = true;
        Object.assign(run.row, { state: "running", startedAt: claim.startedAt });
        addEvents(run, { ...NO_EVENTS, events: [claim.event] });
        return { run: { ...run.row }, token: taken.token, readyMark: taken.readyMark };
      }),
    release: async (id, token) => {
      const run = heldRun(id, token);
      if (run !== undefined) requeue(run);
      return run !== undefined;
    },
    recoverLost: async ({ worker, requeues, ending, limits, count }) => {
      const lost = queue.lostTo(worker, count).map(({ id }) => id);
      if (requeues > 0) {
        for (const id of lost) requeue(runs.get(id)!);
        return { requeued: lost, ended: [] };
      }
      for (const id of lost) await store.endRun(id, { ...ending, from: ["running"] }, NO_EVENTS, limits);
      return { requeued: [], ended: lost };
    },
    isPaused: async () => queue.isPaused,
    setPaused: async (isPaused) => {
      queue.isPaused = isPaused;
    },
    findReply: async (scope, nowMark) => findReply(scope, nowMark),
    createRun: async (run, key) =>
      once(key, () => {
        const full = queue.refusal([run]);
        if (full !== null) return full;
        const created = createRun(run);
        if (created === null) return { kind: "empty" } as const;
        saveReply(key, replyOf(run));
        return { kind: "created", ...created } as const;
      }),
    createGroup: async (group, key) =>
      once(key, () => {
        const full = queue.refusal(group.runs);
        if (full !== null) return full;
        const seqs = group.runs.map((run) => createRun(run)!.seq);
        const members = group.runs.map(({ id }) => runs.get(id)!);
        groups.add(group.id, members);
        saveReply(key, groupReplyOf(group));
        return { kind: "created", seqs } as const;
      }),
    addWake: async ({ sessionKey, text, limits }, key) =>
      once(key, () => {
        const bytes = wakeBytes(text);
        const before = sessions.get(sessionKey);
        const own = before === undefined ? NOTHING : { wakes: before.wakes.length, bytes: before.wakeBytes };
        const scope = exceededScope(bytes, { session: own, service: pending }, limits);
        if (scope !== undefined) return { kind: "full", scope } as const;
        const session = sessionOf(sessionKey);
        lastIds.wake += 1;
        session.wakes.push({ id: lastIds.wake, text, bytes });
        session.wakeBytes += bytes;
        pending.wakes += 1;
        pending.bytes += bytes;
        const queued = { chatId: session.id, eventId: lastIds.wake, pending: session.wakes.length };
        saveReply(key, { wake: { sessionKey, ...queued } });
        return { kind: "queued", ...queued } as const;
      }),
    pendingSessions: async () =>
      [...sessions]
        .filter(([, { wakes }]) => wakes.length > 0)
        .sort(([, a], [, b]) => a.wakes[0]!.id - b.wakes[0]!.id)
        .map(([key]) => key),
    getRun: async (id) => found(id, ({ row }) => ({ ...row })),
    getSummary: async (id) => found(id, ({ row }) => summary(row)),
    getStatus: async (id, maxFiles) => found(id, (run) => statusOf(run, maxFiles)),
    listRuns: async (before, limit, { state, sessionKey, tag }: RunFilter = {}) =>
      [...runs.values()]
        .filter(({ row }) => before === null || row.seq < before)
        .filter(({ row }) => state === undefined || row.state === state)
        .filter(({ row }) => sessionKey === undefined || row.sessionKey === sessionKey)
        .filter(({ row }) => tag === undefined || row.tags.includes(tag))
        .slice(-limit)
        .reverse()
        .map(({ row }) => summary(row)),
    retryRun: async (id, { dueMark, event }, batch, limits, token) => {
      const run = heldRun(id, token);
      if (run === undefined) return false;
      const attempt = run.row.attempt + 1;
      Object.assign(run.row, { state: "queued", startedAt: null, dueMark, attempt });
      addEvents(run, { ...batch, events: [...batch.events, event] }, limits);
      run.progress = null;
      run.files.clear();
      queue.putBack(id, dueMark);
      return true;
    },
    append: async (id, batch, limits, token) => {
      const run = heldRun(id, token);
      if (run !== undefined) addEvents(run, batch, limits);
      return run !== undefined;
    },
    endRun: async (id, ending, batch, limits, token) => {
      const run = token === undefined ? runs.get(id) : heldRun(id, token);
      if (run === undefined || !ending.from.includes(run.row.state)) return false;
      Object.assign(run.row, { state: ending.to, finishedAt: ending.finishedAt, error: ending.error });
      run.endedMark = ending.endedMark;
      addEvents(run, { ...batch, events: [...batch.events, ending.terminal] }, limits);
      outbox.add(run.row, ending.endedMark, ending.receivers);
      groups.countEnd(id);
      queue.end(id);
      return true;
    },
    readEvents: async (id, after, maxEvents, maxBytes) =>
      found(id, (run) => readEvents(run, after, maxEvents, maxBytes)),
    readGroup: async (id, after, most) => groups.read(id, after, most),
    groupOf: async (runId) => groups.of(runId),
    terminalEvent: async (id) => found(id, terminalEvent),
    getFile: async (id, name) => runs.get(id)?.files.get(name) ?? null,
    removeFile: async (id, name) => {
      const run = runs.get(id);
      return run !== undefined && run.endedMark !== null && run.files.delete(name);
    },
    sweep: async ({ endedBefore, maxEndedRuns, maxEndedDeliveries, nowMark, ...request }: SweepRequest) => {
      const ended = [...runs.values()]
        .filter(({ endedMark }) => endedMark !== null)
        .sort((a, b) => a.endedMark! - b.endedMark! || a.row.seq - b.row.seq);
      let [removedRuns, budget] = [0, request.budget];
      for (const { row, endedMark, events } of ended) {
        const isDue = endedMark! <= endedBefore || ended.length - removedRuns > maxEndedRuns;
        if (budget <= 0 || !isDue) break;
        runs.delete(row.id);
        groups.remove(row.id);
        const session = sessions.get(row.sessionKey)!;
        session.runs -= 1;
        if (session.runs === 0 && session.wakes.length === 0) sessions.delete(row.sessionKey);
        budget -= 1 + events.length;
        removedRuns += 1;
      }
      if (budget > 0) budget -= outbox.sweep(endedBefore, maxEndedDeliveries, budget);
      for (const [scope, { expiresMark }] of replies) if (expiresMark <= nowMark) replies.delete(scope);
      return { removedRuns, endedRuns: ended.length - removedRuns, more: budget <= 0 };
    },
    ping: async () => undefined,
    close: async () => undefined,
  };
  return store;
}

function statusOf(run: MemoryRun, maxFiles: number): StoredStatus {
  const { progress, files } = run;
  const firstFiles = [...files.values()].slice(0, maxFiles);
  return { ...summary(run.row), progress, files: firstFiles, fileCount: files.size, terminal: terminalEvent(run) };
}

function summary(row: RunRow): RunSummary {
  const { message: _, graph: __, traceparent: ___, promptFacts: ____, ...rest } = row;
  return rest;
}
