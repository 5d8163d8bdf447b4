import type { Clock, Timer } from "../clock.js";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import type { RunRow } from "../run.js";
import { isShared } from "../store/store.js";
import type { EventBus, Listener } from "./event-bus.js";
import { cancelled } from "./outcome.js";
import { Queue } from "./queue/queue.js";
import { Retention } from "./retention.js";
import { createRunContext, type RunObserver, type RunParts } from "./run-context.js";
import { createRunReads, type RunReads } from "./run-reader.js";
import {
  type GroupItem,
  type HeartbeatResult,
  type QueuedWake,
  RunStarter,
  type Started,
  type StartedGroup,
  type StartGuard,
  type StartRequest,
  type WakeRequest,
} from "./run-starter.js";

/** Turns of the event loop that readers have at the end; one that is stalled does not hold the stop up. */
const LAST_TURNS = 1000;

export interface RunStats {
  readonly queued: number;
  readonly running: number;
  /** Time for which the oldest queued run has waited. */
  readonly waitedMs: number;
  /** Runs and groups with at least one reader waiting for events. */
  readonly followed: number;
}

/** The runs of one service, as HTTP and the application see them. Everything fails with HookError. */
export interface Runs extends RunReads {
  /** Recovers the runs of an earlier process. Every other call waits for it; the next call retries a failure. */
  open(): Promise<void>;
  /** Fails: idempotency_mismatch, queue_full, shutting_down, store_unavailable. Committed when it resolves. */
  start(request: StartRequest, guard?: StartGuard): Promise<Started>;
  /** Creates all runs of a group, or none. Fails as start does; what is wrong with an item names its index. */
  startGroup(items: readonly GroupItem[], guard?: StartGuard): Promise<StartedGroup>;
  /** Queues a system event for the session's next run. Fails as start does. */
  queueWake(request: WakeRequest): Promise<QueuedWake>;
  /** Starts one run per session with pending events, or of the one session. */
  heartbeat(options?: { sessionKey?: string }): Promise<HeartbeatResult>;
  /** Idempotent: an ended run is returned as it is. Fails with run_not_found. */
  cancel(runId: string): Promise<RunRow>;
  /** Whether no run starts. */
  isPaused(): Promise<boolean>;
  /**
   * Lets no run start, or lets them start again. It stays so after a restart; running runs go on, and starts are queued.
   * Fails with store_unavailable.
   */
  setPaused(isPaused: boolean): Promise<void>;
  /** Returns a listener for changes of one run. The caller closes it; so does `close`. */
  listen(runId: string): Listener;
  /** Returns a listener for the ends of a group's runs. The caller closes it; so does `close`. */
  listenToGroup(groupId: string): Listener;
  /** Forgets a file of an ended run, whose bytes the caller removes; false where there is none. */
  removeFile(runId: string, name: string): Promise<boolean>;
  /** Wall time that does not jump, in ms: for expiry of signed URLs. */
  now(): number;
  /** Fails with store_unavailable where the store would fail a start, or still fails an earlier statement. */
  ping(): Promise<void>;
  stats(): RunStats;
  readonly closing: boolean;
  /** Id of the run whose agent's code is executing, its timers and callbacks included. */
  readonly current: string | undefined;
  /** Fails a running run whose agent threw outside its promise; leaves any other as it is. */
  fail(runId: string, thrown: unknown): void;
  /**
   * Refuses new starts, lets running agents end for `drainSeconds` (default `drain_seconds`), then aborts them as
   * interrupted and closes the store. Queued runs stay queued. Safe to call twice.
   */
  close(drainSeconds?: number): Promise<void>;
}

export interface RunsOptions extends Omit<RunParts, "eventLimits"> {
  /** Whether this process runs the runs; else workers that share the store do. */
  readonly hasWorker: boolean;
  readonly limits: Limits;
  /** Fate of the runs of an earlier process, in a store of one process. */
  readonly onRestart: "interrupt" | "requeue";
  /** Fate of runs whose worker was lost, in a shared store. */
  readonly onLoss: "interrupt" | "requeue";
  /** Seconds between heartbeats of all sessions; 0: none. */
  readonly heartbeatSeconds: number;
  /** Called before the store is closed. */
  readonly beforeClose?: () => Promise<void>;
}

/** Joins queue, starter and reads of runs over a store. Begins to recover at once. */
export function createRuns(options: RunsOptions): Runs {
  const { store, limits, observer } = options;
  const finished: RunObserver["finished"] = (run) => {
    observer.finished?.(run);
    retention.countEnded();
  };
  const recovered: RunObserver["recovered"] = (lost) => {
    observer.recovered?.(lost);
    for (const _ of lost.ended) retention.countEnded();
  };
  const context = createRunContext({
    ...options,
    eventLimits: { events: limits.run_events, bytes: limits.run_bytes },
    observer: { ...observer, finished, recovered },
  });
  const { bus, current, mark } = context;
  const worker = {
    concurrency: limits.running,
    leaseMs: limits.lease_seconds * 1000,
    onLoss: isShared(store) ? options.onLoss : options.onRestart,
  };
  const queue = new Queue(context, { limits, ...(options.hasWorker && { worker }) });
  const retention = new Retention(context, limits);
  const starter = new RunStarter(context, queue, limits);
  const heartbeat = createHeartbeat(context.clock, options.heartbeatSeconds, () =>
    runs.heartbeat().catch((error: unknown) => observer.fault?.("heartbeat", error)),
  );

  let opening: Promise<void> | undefined;
  const open = () => {
    opening ??= recover().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  async function recover(): Promise<void> {
    await queue.open();
    retention.start();
    heartbeat.start();
  }

  let closing: Promise<void> | undefined;
  /** Waits for the recovery, refuses while closing, then works. */
  const whileOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    await open();
    if (closing !== undefined) throw new HookError("shutting_down");
    return work();
  };
  async function close(drainSeconds: number): Promise<void> {
    heartbeat.stop();
    await queue.drain(drainSeconds);
    await retention.stop();
    await readersCaughtUp(bus);
    bus.close();
    await options.beforeClose?.();
    await store.close();
    // an enabled one costs every promise of the process
    current.disable();
  }

  const reads = createRunReads(context, open, (id) => queue.positionOf(id));
  const runs: Runs = {
    ...reads,
    open,
    start: (request, guard) => whileOpen(() => starter.start(request, guard)),
    startGroup: (items, guard) => whileOpen(() => starter.startGroup(items, guard)),
    queueWake: (request) => whileOpen(() => starter.queueWake(request)),
    heartbeat: (which) => whileOpen(() => starter.heartbeat(which)),
    removeFile: (id, name) => whileOpen(() => store.removeFile(id, name)),
    listen: (id) => bus.listen(id),
    listenToGroup: (id) => bus.listen(id, true),
    async cancel(id) {
      await reads.get(id);
      await queue.cancel(id, cancelled(null));
      return reads.get(id);
    },
    isPaused: () => whileOpen(() => queue.isPaused()),
    setPaused: (isPaused) => whileOpen(() => queue.setPaused(isPaused)),
    fail: (id, thrown) => queue.fail(id, thrown),
    now: mark,
    async ping() {
      await open();
      await store.ping();
    },
    stats: () => ({ queued: queue.queued, running: queue.running, waitedMs: queue.waitedMs, followed: bus.followed }),
    get closing() {
      return closing !== undefined;
    },
    get current() {
      return current.getStore();
    },
    close(drainSeconds = limits.drain_seconds) {
      closing ??= close(drainSeconds);
      return closing;
    },
  };
  open().catch((error: unknown) => observer.fault?.("recovery", error));
  return runs;
}

/** Lets readers that are behind read the last events. */
async function readersCaughtUp(bus: EventBus): Promise<void> {
  for (let turn = 0; turn === 0 || (turn < LAST_TURNS && !bus.isQuiet); turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Calls `beat` every `seconds`, counted from the end of the last call; 0: never. */
function createHeartbeat(clock: Clock, seconds: number, beat: () => Promise<unknown>) {
  let timer: Timer | undefined;
  let isStopped = false;
  const start = () => {
    timer?.cancel();
    if (!isStopped && seconds > 0) timer = clock.setTimer(seconds * 1000, () => void beat().then(start));
  };
  const stop = () => {
    isStopped = true;
    timer?.cancel();
  };
  return { start, stop };
}
