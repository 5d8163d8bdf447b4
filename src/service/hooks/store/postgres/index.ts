// A store of the hook service in PostgreSQL, for several processes and machines.
import "../../../../base/package.js"; // first: in a bundle it throws the sentence that says what to do

export type { Claim, HeldRun, Leases, LostRunPolicy, LostRuns } from "../leases.js";
export { createPostgresStore, type PostgresStore, type PostgresStoreOptions } from "./postgres-store.js";
