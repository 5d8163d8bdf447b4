import { loadPromClient } from "../../../base/lazy.js";
import type { HookLog, Limits } from "../hook-config.js";
import type { RunObserver } from "../runs/run-context.js";
import type { AttemptResult } from "../webhooks/deliverer.js";
import { METHODS } from "./call.js";

/** Methods with a label of their own. */
const METHOD_LABELS: readonly string[] = [...METHODS, "HEAD"];

/** Sources of what is measured when the metrics are read, and the limits beside which it is seen. */
export interface MetricSources {
  readonly stats: () => { readonly queued: number; readonly running: number; readonly waitedMs: number };
  readonly streams: () => number;
  readonly pendingWebhooks: () => number;
  readonly limits: Pick<Limits, "queued" | "running" | "streams">;
}

export type Metrics = ReturnType<typeof createMetrics>;
/** Observer that counts the events of runs. */
type RunCounters = Required<Omit<RunObserver, "previewed" | "warned">>;

/** Prometheus metrics of one service, in a registry of its own. Labels come from fixed lists, never from a request. */
export function createMetrics({ stats, streams, pendingWebhooks, limits }: MetricSources) {
  const running = () => stats().running;
  const { registry, observer, counter, histogram, gauge } = createRunMetrics({
    running,
    runningLimit: limits.running,
  });
  const requests = counter("http_requests_total", "Requests by response status; status gone: the client left first.", [
    "route",
    "method",
    "status",
  ]);
  const requestSeconds = histogram(
    "http_request_seconds",
    "Time from the headers to the end of the response, with waits for runs and without streams.",
    [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    ["route"],
  );
  const authFailures = counter("auth_failures_total", "Requests without a valid token or signature.", ["reason"]);
  const webhookAttempts = counter(
    "webhook_attempts_total",
    "Requests to webhooks by result; failed: tried again later, dead: given up, gone: 410.",
    ["result"],
  );
  const webhookSeconds = histogram("webhook_seconds", "Time of requests to webhooks.", [0.01, 0.1, 0.5, 2, 10, 60]);
  gauge("latentkit_runs_queued", "Runs in the queue.", () => stats().queued);
  gauge("latentkit_queue_wait_seconds", "Wait of the oldest queued run.", () => stats().waitedMs / 1000);
  gauge("latentkit_streams_open", "Open event streams.", streams);
  gauge("latentkit_webhooks_pending", "Webhooks that are due or will be tried again.", pendingWebhooks);
  gauge("latentkit_runs_queued_limit", "Runs that may wait.", () => limits.queued);
  gauge("latentkit_streams_limit", "Streams that may be open.", () => limits.streams);
  return {
    contentType: registry.contentType as string,
    text: () => registry.metrics(),
    /** Counts a request when its connection is done with it; status gone: the client left first. */
    countRequest(request: { route: string; method: string; status: number | "gone"; seconds: number }): void {
      const { route, method, status, seconds } = request;
      requests.inc({ route, method: METHOD_LABELS.includes(method) ? method : "other", status });
      if (route !== "stream") requestSeconds.observe({ route }, seconds);
    },
    authFailed: (reason: "refused" | "limited"): void => authFailures.inc({ reason }),
    /** Counts one request to a webhook. */
    webhookAttempted(result: AttemptResult, seconds: number): void {
      webhookAttempts.inc({ result });
      webhookSeconds.observe(seconds);
    },
    observer,
  };
}

const STARTED = performance.timeOrigin / 1000;
const RUN_BUCKETS = [0.01, 0.1, 1, 10, 60, 600, 3600];

/** Sources of what is measured when the metrics are read. */
export interface RunMetricSources {
  readonly running: () => number;
  readonly runningLimit: number;
}

/** Prometheus metrics of the runs of one process and of itself, in a registry of their own, and what adds to them. */
export function createRunMetrics({ running, runningLimit }: RunMetricSources) {
  const { Counter, Gauge, Histogram, Registry } = loadPromClient();
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Counter({ name: `latentkit_${name}`, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[], labelNames: readonly string[] = []) =>
    new Histogram({ name: `latentkit_${name}`, help, labelNames, buckets, registers });
  /** Adds a gauge whose value is read when the metrics are. */
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  const created = counter("runs_created_total", "Runs accepted.", ["origin"]);
  const finished = counter("runs_finished_total", "Runs ended, by final state.", ["state"]);
  const retried = counter("run_retries_total", "Failed attempts that are retried.");
  const waited = histogram("run_wait_seconds", "Time in the queue before a run started.", RUN_BUCKETS);
  const ran = histogram("run_seconds", "Run time of ended runs.", RUN_BUCKETS);
  const stored = histogram("file_store_seconds", "Time to store a file in the bucket.", [0.01, 0.05, 0.2, 1, 5, 30]);
  const fates = "Runs that this process took from lost workers, by fate: requeued or ended.";
  const lost = counter("leases_lost_total", fates, ["fate"]);
  // a rate begins at 0
  for (const fate of ["requeued", "ended"]) lost.inc({ fate }, 0);
  const failedFiles = counter("files_failed_total", "Files of runs that could not be stored; their runs fail.");
  const faults = counter("faults_total", "Failures outside any response: store errors and misuse by the agent.");
  gauge("latentkit_runs_running", "Runs whose agent is working.", running);
  gauge("latentkit_runs_running_limit", "Runs that may work at the same time.", () => runningLimit);
  gauge("process_resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss());
  gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.", () => STARTED);
  new Counter({
    name: "process_cpu_seconds_total",
    help: "Processor time of the process.",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  const observer: RunCounters = {
    created: ({ origin }) => created.inc({ origin }),
    started: ({ waitedMs }) => waited.observe(waitedMs / 1000),
    finished({ state, ranMs }) {
      finished.inc({ state });
      if (ranMs !== null) ran.observe(ranMs / 1000);
    },
    retried: () => retried.inc(),
    recovered({ requeued, ended }) {
      lost.inc({ fate: "requeued" }, requeued.length);
      lost.inc({ fate: "ended" }, ended.length);
      for (const _ of ended) finished.inc({ state: "interrupted" });
    },
    fileStored({ isStored, ms }) {
      if (isStored) stored.observe(ms / 1000);
      else failedFiles.inc();
    },
    fault: () => faults.inc(),
  };
  return { registry, observer, counter, histogram, gauge };
}

/** Counts and logs the events of runs. */
export function observeRuns(counters: RunCounters, log: HookLog): RunObserver {
  return {
    created(run) {
      counters.created(run);
      log.info({ run_id: run.id, origin: run.origin }, "run accepted");
    },
    started(run) {
      counters.started(run);
      log.info({ run_id: run.id, waited_ms: Math.round(run.waitedMs) }, "run started");
    },
    finished(run) {
      counters.finished(run);
      const ran_ms = run.ranMs === null ? null : Math.round(run.ranMs);
      log.info({ run_id: run.id, state: run.state, ran_ms }, "run ended");
    },
    retried(run) {
      counters.retried(run);
      log.info({ run_id: run.id, attempt: run.attempt }, "run tried again");
    },
    recovered(lost) {
      counters.recovered(lost);
      log.warn(lost, "recovered runs of lost workers");
    },
    warned: (id, message) => log.warn({ run_id: id }, message),
    fileStored: counters.fileStored,
    fault(what, error) {
      counters.fault(what, error);
      log.error({ err: error }, what);
    },
  };
}
