import type { Registry } from "prom-client";
import { loadPromClient } from "../../../base/lazy-packages.js";
import type { RunObserver } from "../runs/run-context.js";

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
export function addGauge(registry: Registry, name: string, help: string, read: () => number): void {
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
