import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { parseConfig } from "#src/render/config/config.js";
import type { Agent, AgentContext, AgentRun } from "#src/service/agent/agent.js";
import { localFiles } from "#src/service/hooks/files/file-store.js";
import type { Limits } from "#src/service/hooks/hook-config.js";
import { HookError, type HookErrorKind } from "#src/service/hooks/hook-error.js";
import type { RunState, StoredEvent } from "#src/service/hooks/run.js";
import type { Runs, RunsOptions } from "#src/service/hooks/runs/create-runs.js";
import { createRuns } from "#src/service/hooks/runs/create-runs.js";
import { createRetryPolicy, type RetryPolicy } from "#src/service/hooks/runs/outcome.js";
import type { Idempotency, StartRequest } from "#src/service/hooks/runs/run-starter.js";
import { FakeClock } from "./fake-clock.js";
import type { StoreKind } from "./hook-stores.js";

type Overrides = Partial<Omit<RunsOptions, "limits" | "clock">> & { limits?: Partial<Limits>; clock?: FakeClock };

export const defaultLimits = (overrides: Partial<Limits> = {}): Limits => ({
  ...parseConfig({}, "test").limits,
  ...overrides,
});

/** Three attempts after delays of 5 s and 10 s, without chance, of errors with `retryable` or a code of the list. */
export const retryPolicy = (...codes: string[]): RetryPolicy =>
  createRetryPolicy({ attempts: 3, first_delay_seconds: 5, longest_delay_seconds: 300, codes }, () => 0);

/** Runs of a service on a fake clock with a scripted agent; faults are collected. */
export function engine(kind: StoreKind, overrides: Overrides = {}) {
  const clock = overrides.clock ?? new FakeClock();
  const store = overrides.store ?? kind.create();
  const script = scriptedAgent();
  const faults: unknown[] = [];
  const options: RunsOptions = {
    onRestart: "interrupt",
    onLoss: overrides.onRestart ?? "interrupt",
    hasWorker: true,
    retries: retryPolicy(),
    files: localFiles,
    heartbeatSeconds: 0,
    agent: script.agent,
    observer: { fault: (_what, error) => faults.push(error) },
    ...overrides,
    store,
    clock,
    limits: defaultLimits(overrides.limits),
  };
  return { runs: createRuns(options), clock, store, script, faults, options };
}

interface Call {
  readonly run: AgentRun;
  readonly context: AgentContext;
  readonly succeed: (response: string) => void;
  readonly fail: (error: unknown) => void;
}

/** An agent whose calls the test ends by hand. */
export function scriptedAgent(): { agent: Agent; calls: Call[]; call(runId: string): Promise<Call> } {
  const calls: Call[] = [];
  const agent: Agent = (run, context) =>
    new Promise((resolve, reject) => {
      calls.push({ run, context, succeed: (response) => resolve({ response }), fail: reject });
    });
  const call = async (runId: string): Promise<Call> => {
    const find = () => calls.findLast(({ run }) => run.id === runId);
    await until(() => find() !== undefined, `agent call of ${runId}`);
    return find()!;
  };
  return { agent, calls, call };
}

export const request = (extra: Partial<StartRequest> = {}): StartRequest => ({
  origin: "agent",
  message: "hello",
  sessionKey: "hook:a",
  ...extra,
});

export const idempotency = (extra: Partial<Idempotency> = {}): Idempotency => ({
  key: "k1",
  tokenId: "token",
  endpoint: "agent",
  payloadHash: "hash",
  ...extra,
});

export async function startRun(runs: Runs, extra: Partial<StartRequest> = {}): Promise<string> {
  return (await runs.start(request(extra))).runId;
}

/** Closes without a drain; agents that ignore their signal get their grace. */
export const closeNow = (runs: Runs, clock: FakeClock): Promise<void> => advanceUntil(clock, runs.close(0));

/** Moves the clock on, second by second, until the work is done: a store on a network takes real time as well. */
export async function advanceUntil(clock: FakeClock, work: Promise<void>): Promise<void> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  while (!isDone) await clock.advance(1000);
  await done;
}

/** All events of a run from the store. */
export async function allEvents(runs: Runs, runId: string, after = 0): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let cursor = after; ; ) {
    const slice = await runs.read(runId, cursor);
    events.push(...slice.events);
    if (slice.events.length === 0) return events;
    cursor = slice.events.at(-1)!.id;
  }
}

export const isTerminal = ({ event }: { event: string }): boolean => ["done", "error", "aborted"].includes(event);

/** The run is in that state with exactly one terminal event, the newest; ids have no gap. Returns its data. */
export async function assertEnded(runs: Runs, runId: string, state: RunState): Promise<Record<string, unknown>> {
  await until(async () => (await runs.get(runId)).state === state, `${runId} to be ${state}`);
  const events = await allEvents(runs, runId);
  assert.equal(events.filter(isTerminal).length, 1);
  assert.ok(isTerminal(events.at(-1)!));
  const first = events[0]!.id;
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, index) => first + index),
  );
  return JSON.parse(events.at(-1)!.data) as Record<string, unknown>;
}

export async function refusesHook(work: Promise<unknown>, kind: HookErrorKind): Promise<HookError> {
  const error = await work.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof HookError, `expected a HookError, received ${String(error)}`);
  assert.equal(error.kind, kind, error.message);
  return error;
}

/** Waits in real time, at most two minutes. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await isSo())) {
    if (performance.now() > end) assert.fail(`waited in vain for ${what}`);
    await sleep(1);
  }
}
