// A store of the hook service in PostgreSQL, for several processes and machines, and the workers that share it.
import "../../base/package.js"; // first: in a bundle it throws the sentence that says what to do

export { type RunningWorker, startWorker, type WorkerOptions } from "./shared/worker.js";
export type {
  Claim,
  HeldRun,
  Leases,
  LostRunPolicy,
  LostRuns,
  RunCounts,
  SharedStore,
} from "./store/leases.js";
export { createPostgresStore, type PostgresStore, type PostgresStoreOptions } from "./store/postgres/postgres-store.js";
