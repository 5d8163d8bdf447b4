import type { RunFilter, RunRow, RunSummary, StoredStatus } from "../run.js";
import { type Backlog, countFitting, exceededScope, wakeBytes } from "./admission.js";
import { LocalQueue, queuedRun } from "./local-queue.js";
import { createMemoryOutbox, type MemoryOutbox } from "./memory-deliveries.js";
import {
  addEvents,
  MemoryGroups,
  type MemoryRun,
  type Mutable,
  newRow,
  readEvents,
  terminalEvent,
} from "./memory-runs.js";
import {
  type EventBatch,
  groupReplyOf,
  type NewKey,
  type NewRun,
  type Reply,
  replyOf,
  type Store,
  type StoredReply,
  type SweepRequest,
  type SweepResult,
} from "./store.js";

interface Session {
  readonly id: number;
  runs: number;
  wakes: { readonly id: number; readonly text: string; readonly bytes: number }[];
  wakeBytes: number;
}

interface State {
  readonly runs: Map<string, MemoryRun>;
  readonly sessions: Map<string, Session>;
  readonly replies: Map<string, StoredReply & { readonly expiresMark: number }>;
  readonly lastIds: { session: number; run: number; wake: number };
  readonly pending: Mutable<Backlog>;
  readonly outbox: MemoryOutbox;
  readonly groups: MemoryGroups;
  readonly queue: LocalQueue;
}

const NOTHING: Backlog = { wakes: 0, bytes: 0 };
const NO_EVENTS: EventBatch = { skip: 0, events: [], files: [] };

/** Creates a store in the memory of this process: for tests and embedding. It never fails. */
export function createMemoryStore(): Store {
  const state: State = {
    runs: new Map(),
    sessions: new Map(),
    replies: new Map(),
    lastIds: { session: 0, run: 0, wake: 0 },
    pending: { ...NOTHING },
    outbox: createMemoryOutbox(),
    groups: new MemoryGroups(),
    queue: new LocalQueue(),
  };
  const { runs, sessions, groups, queue } = state;
  const heldRun = (id: string, token: number | undefined) => {
    const run = runs.get(id);
    return run?.row.state === "running" && (token === undefined || queue.isHeld(id, token)) ? run : undefined;
  };
  const requeue = (run: MemoryRun) => {
    Object.assign(run.row, { state: "queued", startedAt: null });
    run.progress = null;
    queue.putBack(run.row.id);
  };
  const { add: addDeliveries, sweep: _, ...outbox } = state.outbox;
  const store: Store = {
    ...outbox,
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
        addEvents(run, { skip: 0, events: [claim.event], files: [] });
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
    countRuns: async (most) => queue.counts(most),
    positionOf: async (id, most) => queue.positionOf(id, most),
    nextMarks: async (afterMark) => queue.nextMarks(afterMark),
    overdue: async (readyBefore, count) => queue.overdue(readyBefore, count),
    pastDeadline: async (nowMark, count) => queue.pastDeadline(nowMark, count),
    isPaused: async () => queue.isPaused,
    setPaused: async (isPaused) => {
      queue.isPaused = isPaused;
    },
    findReply: async (scope, nowMark) => findReply(state, scope, nowMark),
    createRun: async (run, key) => {
      const stored = key && findReply(state, key.scope, key.nowMark);
      if (stored) return { kind: "replayed", stored };
      const full = queue.refusal([run]);
      if (full !== null) return full;
      const created = createRun(state, run);
      if (created === null) return { kind: "empty" };
      saveReply(state, key, replyOf(run));
      return { kind: "created", ...created };
    },
    createGroup: async (group, key) => {
      const stored = key && findReply(state, key.scope, key.nowMark);
      if (stored) return { kind: "replayed", stored };
      const full = queue.refusal(group.runs);
      if (full !== null) return full;
      const seqs = group.runs.map((run) => createRun(state, run)!.seq);
      groups.add(
        group.id,
        group.runs.map(({ id }) => runs.get(id)!),
      );
      saveReply(state, key, groupReplyOf(group));
      return { kind: "created", seqs };
    },
    addWake: async (wake, key) => {
      const stored = key && findReply(state, key.scope, key.nowMark);
      if (stored) return { kind: "replayed", stored };
      const bytes = wakeBytes(wake.text);
      const before = sessions.get(wake.sessionKey);
      const own = before === undefined ? NOTHING : { wakes: before.wakes.length, bytes: before.wakeBytes };
      const scope = exceededScope(bytes, { session: own, service: state.pending }, wake.limits);
      if (scope !== undefined) return { kind: "full", scope };
      const session = sessionOf(state, wake.sessionKey);
      state.lastIds.wake += 1;
      session.wakes.push({ id: state.lastIds.wake, text: wake.text, bytes });
      session.wakeBytes += bytes;
      state.pending.wakes += 1;
      state.pending.bytes += bytes;
      const queued = { chatId: session.id, eventId: state.lastIds.wake, pending: session.wakes.length };
      saveReply(state, key, { wake: { sessionKey: wake.sessionKey, ...queued } });
      return { kind: "queued", ...queued };
    },
    pendingSessions: async () =>
      [...sessions]
        .filter(([, { wakes }]) => wakes.length > 0)
        .sort(([, a], [, b]) => a.wakes[0]!.id - b.wakes[0]!.id)
        .map(([key]) => key),
    getRun: async (id) => {
      const run = runs.get(id);
      return run === undefined ? null : { ...run.row };
    },
    getSummary: async (id) => {
      const run = runs.get(id);
      return run === undefined ? null : summary(run.row);
    },
    getStatus: async (id, maxFiles) => {
      const run = runs.get(id);
      return run === undefined ? null : statusOf(run, maxFiles);
    },
    listRuns: async (before, limit, filter) => listRuns(state, before, limit, filter),
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
      if (run === undefined) return false;
      addEvents(run, batch, limits);
      return true;
    },
    endRun: async (id, ending, batch, limits, token) => {
      const run = token === undefined ? runs.get(id) : heldRun(id, token);
      if (run === undefined || !ending.from.includes(run.row.state)) return false;
      Object.assign(run.row, { state: ending.to, finishedAt: ending.finishedAt, error: ending.error });
      run.endedMark = ending.endedMark;
      addEvents(run, { ...batch, events: [...batch.events, ending.terminal] }, limits);
      addDeliveries(run.row, ending.endedMark, ending.receivers);
      groups.countEnd(id);
      queue.end(id);
      return true;
    },
    readEvents: async (id, after, maxEvents, maxBytes) => {
      const run = runs.get(id);
      return run === undefined ? null : readEvents(run, after, maxEvents, maxBytes);
    },
    readGroup: async (id, after, most) => groups.read(id, after, most),
    groupOf: async (runId) => groups.of(runId),
    terminalEvent: async (id) => {
      const run = runs.get(id);
      return run === undefined ? null : terminalEvent(run);
    },
    getFile: async (id, name) => runs.get(id)?.files.get(name) ?? null,
    removeFile: async (id, name) => {
      const run = runs.get(id);
      return run !== undefined && run.endedMark !== null && run.files.delete(name);
    },
    sweep: async (request) => sweep(state, request),
    ping: async () => undefined,
    close: async () => undefined,
  };
  return store;
}

/** Null where there is nothing to run. */
function createRun(state: State, run: NewRun): { seq: number; wakes: number } | null {
  const waiting = state.sessions.get(run.sessionKey)?.wakes ?? [];
  const sizes = waiting.map(({ bytes }) => bytes);
  const pending = waiting.slice(0, countFitting(sizes, run.maxWakeBytes));
  const message = run.compose(pending.map(({ text }) => text));
  if (message === null) return null;
  const session = sessionOf(state, run.sessionKey);
  takeWakes(state, session, pending.length);
  session.runs += 1;
  state.lastIds.run += 1;
  const row = newRow(run, state.lastIds.run, session.id, message);
  state.runs.set(run.id, { row, endedMark: null, events: [], bytes: 0, files: new Map(), progress: null });
  state.queue.add(queuedRun(run, row.seq));
  return { seq: row.seq, wakes: pending.length };
}

function findReply({ replies }: State, scope: string, nowMark: number): StoredReply | null {
  const stored = replies.get(scope);
  return stored === undefined || stored.expiresMark <= nowMark ? null : stored;
}

function saveReply({ replies }: State, key: NewKey | undefined, reply: Reply): void {
  if (key === undefined) return;
  // deleted first: the map stays in order of expiry
  replies.delete(key.scope);
  replies.set(key.scope, { payloadHash: key.payloadHash, reply, expiresMark: key.expiresMark });
}

function sessionOf({ sessions, lastIds }: State, key: string): Session {
  let session = sessions.get(key);
  if (session === undefined) {
    lastIds.session += 1;
    session = { id: lastIds.session, runs: 0, wakes: [], wakeBytes: 0 };
    sessions.set(key, session);
  }
  return session;
}

function takeWakes({ pending }: State, session: Session, count: number): void {
  const taken = session.wakes.splice(0, count);
  const bytes = taken.reduce((sum, wake) => sum + wake.bytes, 0);
  session.wakeBytes -= bytes;
  pending.wakes -= taken.length;
  pending.bytes -= bytes;
}

function listRuns({ runs }: State, before: number | null, limit: number, filter: RunFilter = {}): RunSummary[] {
  const { state = null, sessionKey = null, tag = null } = filter;
  return [...runs.values()]
    .filter(({ row }) => before === null || row.seq < before)
    .filter(({ row }) => state === null || row.state === state)
    .filter(({ row }) => sessionKey === null || row.sessionKey === sessionKey)
    .filter(({ row }) => tag === null || row.tags.includes(tag))
    .slice(-limit)
    .reverse()
    .map(({ row }) => summary(row));
}

function sweep(state: State, request: SweepRequest): SweepResult {
  const ended = [...state.runs.values()]
    .filter(({ endedMark }) => endedMark !== null)
    .sort((a, b) => a.endedMark! - b.endedMark! || a.row.seq - b.row.seq);
  let [removedRuns, budget] = [0, request.budget];
  for (const run of ended) {
    const isDue = run.endedMark! <= request.endedBefore || ended.length - removedRuns > request.maxEndedRuns;
    if (budget <= 0 || !isDue) break;
    state.runs.delete(run.row.id);
    state.groups.remove(run.row.id);
    const session = state.sessions.get(run.row.sessionKey)!;
    session.runs -= 1;
    if (session.runs === 0 && session.wakes.length === 0) state.sessions.delete(run.row.sessionKey);
    budget -= 1 + run.events.length;
    removedRuns += 1;
  }
  if (budget > 0) budget -= state.outbox.sweep(request.endedBefore, request.maxEndedDeliveries, budget);
  for (const [scope, { expiresMark }] of state.replies) if (expiresMark <= request.nowMark) state.replies.delete(scope);
  return { removedRuns, endedRuns: ended.length - removedRuns, more: budget <= 0 };
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
