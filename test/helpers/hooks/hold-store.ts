// A process of its own that claims a store file, says so, and stays until it is killed.
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import { newRun } from "./new-run.js";

const store = createSqliteStore(process.argv[2]!);
await store.createRun(newRun("r1", { compose: () => "from the other process" }));
console.log("claimed");
// a store that nothing refers to may be collected, and its lock with it
setInterval(() => store, 60_000);
