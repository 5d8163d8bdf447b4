// A store of the hook service in PostgreSQL, for several processes and machines, and the workers that share it.
import "../base/package.js"; // first: in a bundle it throws the sentence that says what to do

export {
  createPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from "./hooks/store/postgres/postgres-store.js";
export type { Claim, HeldRun, LostRunPolicy, LostRuns, QueueStore, RunCounts } from "./hooks/store/queue-store.js";
export type { SharedStore } from "./hooks/store/store.js";
export { type RunningWorker, startWorker, type WorkerOptions } from "./worker/worker.js";
