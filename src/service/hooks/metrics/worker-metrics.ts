import { loadPromClient } from "../../../base/lazy-packages.js";
import { createRunMetrics, type RunMetricSources, type RunMetrics } from "./run-metrics.js";

/** Prometheus metrics of one worker. */
export interface WorkerMetrics extends RunMetrics {
  /** Counts runs that were taken from lost workers. */
  countLost(runs: { readonly requeued: number; readonly ended: number }): void;
}

export function createWorkerMetrics(sources: RunMetricSources): WorkerMetrics {
  const metrics = createRunMetrics(sources);
  const { Counter } = loadPromClient();
  const lost = new Counter({
    name: "latentkit_leases_lost_total",
    help: "Runs that this worker took from lost workers, by fate: requeued or ended.",
    labelNames: ["fate"],
    registers: [metrics.registry],
  });
  const countLost: WorkerMetrics["countLost"] = ({ requeued, ended }) => {
    lost.inc({ fate: "requeued" }, requeued);
    lost.inc({ fate: "ended" }, ended);
  };
  // a rate begins at 0
  countLost({ requeued: 0, ended: 0 });
  return { ...metrics, countLost };
}
