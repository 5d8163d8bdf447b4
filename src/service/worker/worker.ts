import { CHECKED_LATER, checkOptions, FUNCTION, hasMethods, type OptionRules, type Rule } from "../../base/options.js";
import { parseConfig } from "../../render/config/config.js";
import type { Agent } from "../agent/agent.js";
import { type Clock, systemClock } from "../hooks/clock.js";
import { FILE_STORE, type FileStore, localFiles } from "../hooks/files/file-store.js";
import { type HookConfigInput, type HookLog, LOGGER } from "../hooks/hook-config.js";
import { createRunMetrics, observeRuns } from "../hooks/http/metrics.js";
import { createRetryPolicy } from "../hooks/runs/outcome.js";
import { Claims } from "../hooks/runs/queue/claims.js";
import { createRunContext } from "../hooks/runs/run-context.js";
import type { SharedStore } from "../hooks/store/store.js";
import { createEndpoints, receiversOfEnd } from "../hooks/webhooks/endpoints.js";
import { createLogger } from "../log.js";

const LEASE_SECONDS = 15;
const CONCURRENCY = 4;
const EVENT_LIMITS = { events: 10_000, bytes: 16 * 1024 * 1024 };
const DRAIN_SECONDS = 30;

/** Options of `startWorker`. */
export interface WorkerOptions {
  /** The work of a run. */
  readonly agent: Agent;
  /** @internal Agent of runs that `latentkit render --store` queues; without it, they fail. */
  readonly batchAgent?: Agent;
  /** As `createPostgresStore` makes one; the worker closes it. */
  readonly store: SharedStore;
  /** Keeper of the files that runs report, the same as the front ends'. Default: they stay where the agent wrote them. */
  readonly files?: FileStore;
  /** Most runs at the same time. Default: 4. */
  readonly concurrency?: number;
  /** Time after which a worker that says nothing has lost its runs, at least 3. Default: 15. */
  readonly leaseSeconds?: number;
  /** Fate of runs whose worker was lost: they start again, once, or end as interrupted. Default: requeue. */
  readonly onLoss?: "requeue" | "interrupt";
  /** Most events of one run that are kept, and their bytes. Default: 10,000 and 16 MiB. */
  readonly eventLimits?: { readonly events: number; readonly bytes: number };
  /** Webhooks of the front ends, as in their configuration: the worker writes down what these will send. Default: none. */
  readonly webhooks?: HookConfigInput["webhooks"];
  /** Retries of runs, as in the configuration of the front ends. Default: three attempts of errors that say they are transient. */
  readonly retries?: HookConfigInput["retries"];
  /** A pino logger, or one like it. Default: warnings and errors to stderr. */
  readonly logger?: HookLog;
  /** Source of the time. Default: the system's. */
  readonly clock?: Clock;
}

/** A worker that claims runs. */
export interface RunningWorker {
  /** Number of runs that it holds. */
  readonly running: number;
  /** Id of the run whose agent's code is executing, its timers and callbacks included. */
  readonly current: string | undefined;
  /** Whether close() has been called. */
  readonly closing: boolean;
  /** Prometheus metrics of this worker and its process. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** Rejects if the store cannot be used. */
  ping(): Promise<void>;
  /** Fails a run of this worker whose agent threw outside its promise. */
  fail(runId: string, thrown: unknown): void;
  /**
   * Claims nothing more, lets running runs end for `drainSeconds` (default 30), then gives the others up, as `onLoss`
   * says, and closes the store. Safe to call twice.
   */
  close(drainSeconds?: number): Promise<void>;
}

const whole = (least: number): Rule => [
  `a whole number from ${least} to 10,000`,
  (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= 10_000,
];
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;

const WORKER_RULES: OptionRules<WorkerOptions> = {
  agent: FUNCTION,
  batchAgent: FUNCTION,
  store: ["a shared store, as createPostgresStore makes one", (value) => hasMethods(value, "claim", "listen", "renew")],
  files: FILE_STORE,
  concurrency: whole(1),
  leaseSeconds: whole(3),
  onLoss: ["requeue or interrupt", (value) => value === "requeue" || value === "interrupt"],
  eventLimits: [
    "positive whole numbers { events, bytes }",
    (value) => isCount((value as { events?: unknown })?.events) && isCount((value as { bytes?: unknown })?.bytes),
  ],
  webhooks: CHECKED_LATER,
  retries: CHECKED_LATER,
  logger: LOGGER,
  clock: ["a clock with now, monotonic and setTimer", (value) => hasMethods(value, "now", "monotonic", "setTimer")],
};

/**
 * Starts a worker: it claims the runs that front ends take (`createHookService` with `workers: true`), those of one
 * session one after the other, and holds each by a lease. Rejects with store_unavailable if the store cannot be
 * reached.
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  checkOptions("startWorker", options, WORKER_RULES, ["agent", "store"]);
  const { agent, store, clock = systemClock, logger: log = createLogger({ level: "warn" }) } = options;
  const { files = localFiles, concurrency = CONCURRENCY, leaseSeconds = LEASE_SECONDS, onLoss = "requeue" } = options;
  const { webhooks, retries } = options;
  const config = parseConfig({ channels: { web: { webhooks, retries } } }, "startWorker");
  const endpoints = createEndpoints(config.channels.web.webhooks);
  const metrics = createRunMetrics({ running: () => claims.running, runningLimit: concurrency });
  const context = createRunContext({
    agent,
    batchAgent: options.batchAgent,
    store,
    files,
    clock,
    eventLimits: options.eventLimits ?? EVENT_LIMITS,
    retries: createRetryPolicy(config.channels.web.retries),
    observer: observeRuns(metrics.observer, log),
    receiversOf: (state) => receiversOfEnd(endpoints, state),
  });
  const { current } = context;
  const claims = new Claims(context, { concurrency, leaseMs: leaseSeconds * 1000, onLoss });
  await claims.open();
  claims.claimSoon();
  let closing: Promise<void> | undefined;
  const close = async (drainSeconds: number) => {
    await claims.drain(drainSeconds);
    await store.close();
    // an enabled one costs every promise of the process
    current.disable();
  };
  return {
    get running() {
      return claims.running;
    },
    get current() {
      return current.getStore();
    },
    get closing() {
      return closing !== undefined;
    },
    metrics: { contentType: metrics.registry.contentType, text: () => metrics.registry.metrics() },
    ping: () => store.ping(),
    fail: (id, thrown) => claims.fail(id, thrown),
    close(drainSeconds = DRAIN_SECONDS) {
      closing ??= close(drainSeconds);
      return closing;
    },
  };
}
