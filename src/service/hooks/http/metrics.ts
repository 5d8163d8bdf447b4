import { loadPromClient } from "../../../base/lazy-packages.js";
import type { Limits } from "../hook-config.js";
import type { RunObserver } from "../runs/run-context.js";
import type { AttemptResult } from "../webhooks/deliverer.js";
import { METHODS } from "./call.js";

const STARTED = performance.timeOrigin / 1000;

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
  readonly observer: Required<RunObserver>;
}

/** Sources of what is measured when the metrics are read, and the limits beside which it is seen. */
export interface MetricSources {
  readonly stats: () => { readonly queued: number; readonly running: number; readonly waitedMs: number | undefined };
  readonly streams: () => number;
  readonly limits: Pick<Limits, "queued" | "running" | "streams">;
}

export function createMetrics({ stats, streams, limits }: MetricSources): Metrics {
  const { Counter, Gauge, Histogram, Registry } = loadPromClient();
  const registry = new Registry();
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
  const waited = new Histogram({
    name: "latentkit_run_wait_seconds",
    help: "Time in the queue before a run started.",
    buckets: [0.01, 0.1, 1, 10, 60, 600, 3600],
    registers,
  });
  const ran = new Histogram({
    name: "latentkit_run_seconds",
    help: "Run time of ended runs.",
    buckets: [0.01, 0.1, 1, 10, 60, 600, 3600],
    registers,
  });
  const stored = new Histogram({
    name: "latentkit_file_store_seconds",
    help: "Time in which files of runs were put in a bucket.",
    buckets: [0.01, 0.05, 0.2, 1, 5, 30],
    registers,
  });
  const lost = new Counter({
    name: "latentkit_files_failed_total",
    help: "Files of runs that could not be stored; their runs fail.",
    registers,
  });
  const faults = new Counter({
    name: "latentkit_faults_total",
    help: "Failures that no response shows: of the store, or an agent's misuse.",
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
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge("latentkit_runs_queued", "Runs in the queue.", () => stats().queued);
  gauge("latentkit_runs_running", "Runs whose agent is working.", () => stats().running);
  gauge(
    "latentkit_queue_wait_seconds",
    "Time for which the next run has waited.",
    () => (stats().waitedMs ?? Number.NaN) / 1000,
  );
  gauge("latentkit_streams_open", "Open event streams.", streams);
  gauge("latentkit_runs_queued_limit", "Runs that may wait.", () => limits.queued);
  gauge("latentkit_runs_running_limit", "Runs that may work at the same time.", () => limits.running);
  gauge("latentkit_streams_limit", "Streams that may be open.", () => limits.streams);
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
    observer: {
      created: ({ origin }) => created.inc({ origin }),
      started: ({ waitedMs }) => waited.observe(waitedMs / 1000),
      finished({ state, ranMs }) {
        finished.inc({ state });
        if (ranMs !== null) ran.observe(ranMs / 1000);
      },
      fileStored({ isStored, ms }) {
        if (isStored) stored.observe(ms / 1000);
        else lost.inc();
      },
      fault: () => faults.inc(),
    },
  };
}
