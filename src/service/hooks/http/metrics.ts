import type { Registry } from "prom-client";
import { loadPromClient } from "../../../base/lazy.js";
import type { HookLog, Limits } from "../hook-config.js";
import type { RunObserver } from "../runs/run-context.js";
import type { AttemptResult } from "../webhooks/deliverer.js";
import { METHODS } from "./call.js";

/** Methods with a label of their own. */
const METHOD_LABELS: readonly string[] = [...METHODS, "HEAD"];

/** Prometheus metrics of one service, in a registry of its own. Labels come from fixed lists, never from a request. */
export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  /** Counts a request when its connection is done with it; status gone: the client left first. */
  countRequest(request: { route: string; method: string; status: number | "gone"; seconds: number }): void;
  authFailed(reason: "refused" | "limited"): void;
  /** Counts one request to a webhook. */
  webhookAttempted(result: AttemptResult, seconds: number): void;
  readonly observer: Required<Omit<RunObserver, "previewed" | "warned">>;
}

/** Sources of what is measured when the metrics are read, and the limits beside which it is seen. */
export interface MetricSources {
  readonly stats: () => { readonly queued: number; readonly running: number; readonly waitedMs: number };
  readonly streams: () => number;
  readonly pendingWebhooks: () => number;
  readonly limits: Pick<Limits, "queued" | "running" | "streams">;
}

export function createMetrics({ stats, streams, pendingWebhooks, limits }: MetricSources): Metrics {
  const { Counter, Histogram } = loadPromClient();
  const running = () => stats().running;
  const { registry, observer } = createRunMetrics({ running, runningLimit: limits.running });
  const registers = [registry];
  const requests = new Counter({
    name: "latentkit_http_requests_total",
    help: "Requests by response status; status gone: the client left first.",
    labelNames: ["route", "method", "status"],
    registers,
  });
  const requestSeconds = new Histogram({
    name: "latentkit_http_request_seconds",
    help: "Time from the headers to the end of the response, with waits for runs and without streams.",
    labelNames: ["route"],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    registers,
  });
  const authFailures = new Counter({
    name: "latentkit_auth_failures_total",
    help: "Requests without a valid token or signature.",
    labelNames: ["reason"],
    registers,
  });
  const webhookAttempts = new Counter({
    name: "latentkit_webhook_attempts_total",
    help: "Requests to webhooks by result; failed: tried again later, dead: given up, gone: 410.",
    labelNames: ["result"],
    registers,
  });
  const webhookSeconds = new Histogram({
    name: "latentkit_webhook_seconds",
    help: "Time of requests to webhooks.",
    buckets: [0.01, 0.1, 0.5, 2, 10, 60],
    registers,
  });
  const gauge = (name: string, help: string, read: () => number) => addGauge(registry, name, help, read);
  gauge("latentkit_runs_queued", "Runs in the queue.", () => stats().queued);
  gauge(
    "latentkit_queue_wait_seconds",
    "Time for which the oldest queued run has waited.",
    () => stats().waitedMs / 1000,
  );
  gauge("latentkit_streams_open", "Open event streams.", streams);
  gauge("latentkit_webhooks_pending", "Webhooks that are due or will be tried again.", pendingWebhooks);
  gauge("latentkit_runs_queued_limit", "Runs that may wait.", () => limits.queued);
  gauge("latentkit_streams_limit", "Streams that may be open.", () => limits.streams);
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    countRequest({ route, method, status, seconds }) {
      requests.inc({ route, method: METHOD_LABELS.includes(method) ? method : "other", status });
      if (route !== "stream") requestSeconds.observe({ route }, seconds);
    },
    authFailed: (reason) => authFailures.inc({ reason }),
    webhookAttempted(result, seconds) {
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

/** Prometheus metrics of the runs of one process and of itself, in a registry of their own. */
export interface RunMetrics {
  readonly registry: Registry;
  readonly observer: Required<Omit<RunObserver, "previewed" | "warned">>;
}

export function createRunMetrics({ running, runningLimit }: RunMetricSources): RunMetrics {
  const { Counter, Histogram, Registry } = loadPromClient();
  const registry = new Registry();
  const registers = [registry];
  const created = new Counter({
    name: "latentkit_runs_created_total",
    help: "Runs accepted.",
    labelNames: ["origin"],
    registers,
  });
  const finished = new Counter({
    name: "latentkit_runs_finished_total",
    help: "Runs ended, by final state.",
    labelNames: ["state"],
    registers,
  });
  const retried = new Counter({
    name: "latentkit_run_retries_total",
    help: "Attempts of runs that failed and that another one follows.",
    registers,
  });
  const waited = new Histogram({
    name: "latentkit_run_wait_seconds",
    help: "Time in the queue before a run started.",
    buckets: RUN_BUCKETS,
    registers,
  });
  const ran = new Histogram({
    name: "latentkit_run_seconds",
    help: "Run time of ended runs.",
    buckets: RUN_BUCKETS,
    registers,
  });
  const stored = new Histogram({
    name: "latentkit_file_store_seconds",
    help: "Time in which files of runs were put in a bucket.",
    buckets: [0.01, 0.05, 0.2, 1, 5, 30],
    registers,
  });
  const lost = new Counter({
    name: "latentkit_leases_lost_total",
    help: "Runs that this process took from lost workers, by fate: requeued or ended.",
    labelNames: ["fate"],
    registers,
  });
  // a rate begins at 0
  for (const fate of ["requeued", "ended"]) lost.inc({ fate }, 0);
  const failedFiles = new Counter({
    name: "latentkit_files_failed_total",
    help: "Files of runs that could not be stored; their runs fail.",
    registers,
  });
  const faults = new Counter({
    name: "latentkit_faults_total",
    help: "Failures that no response shows: of the store, or an agent's misuse.",
    registers,
  });
  addGauge(registry, "latentkit_runs_running", "Runs whose agent is working.", running);
  addGauge(registry, "latentkit_runs_running_limit", "Runs that may work at the same time.", () => runningLimit);
  addGauge(registry, "process_resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss());
  addGauge(registry, "process_start_time_seconds", "Start of the process, in seconds since 1970.", () => STARTED);
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
  return {
    registry,
    observer: {
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
    },
  };
}

/** Adds a gauge whose value is read when the metrics are. */
function addGauge(registry: Registry, name: string, help: string, read: () => number): void {
  const { Gauge } = loadPromClient();
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}

/** Counts and logs the events of runs. */
export function observeRuns(counters: Required<Omit<RunObserver, "previewed" | "warned">>, log: HookLog): RunObserver {
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
      log.info(
        { run_id: run.id, state: run.state, ran_ms: run.ranMs === null ? null : Math.round(run.ranMs) },
        "run ended",
      );
    },
    retried(run) {
      counters.retried(run);
      log.info({ run_id: run.id, attempt: run.attempt }, "run tried again");
    },
    recovered(lost) {
      counters.recovered(lost);
      log.warn(lost, "runs of lost workers");
    },
    warned(id, message) {
      log.warn({ run_id: id }, message);
    },
    fileStored(file) {
      counters.fileStored(file);
    },
    fault(what, error) {
      counters.fault(what, error);
      log.error({ err: error }, what);
    },
  };
}
