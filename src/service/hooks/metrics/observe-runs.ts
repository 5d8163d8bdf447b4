import type { HookLog } from "../hook-log.js";
import type { RunObserver } from "../runs/run-context.js";

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
