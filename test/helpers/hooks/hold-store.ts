// A process of its own that claims a store file, says so, and stays until it is killed.
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";

const store = createSqliteStore(process.argv[2]!);
const compose = () => "from the other process";
const run = {
  id: "r1",
  sessionKey: "hook:a",
  origin: "agent",
  name: null,
  timeoutSeconds: 1,
  createdAt: 1,
  createdMark: 1,
  maxWakeBytes: 1,
} as const;
await store.createRun({ ...run, compose });
console.log("claimed");
// a store that nothing refers to may be collected, and its lock with it
setInterval(() => store, 60_000);
