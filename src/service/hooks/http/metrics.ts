import { loadPromClient } from "../../../base/lazy-packages.js";
import type { Limits } from "../hook-config.js";
import { addGauge, createRunMetrics } from "../metrics/run-metrics.js";
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
