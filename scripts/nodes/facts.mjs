// Printed by the runtime that is checked: its name, its instruction sets, best first, and whether it loads an SQLite.
import { loadNative } from "../../dist/native/load.js";
import { loadSqliteDriver } from "../../dist/service/hooks/store/sqlite/driver.js";

const { node, bun, deno } = process.versions;
const runtime = bun !== undefined ? `Bun ${bun}` : deno !== undefined ? `Deno ${deno}` : `Node ${node}`;
process.stdout.write(
  JSON.stringify({
    name: `${runtime}, ${process.platform}-${process.arch}`,
    isas: loadNative().isas(),
    hasSqlite: hasSqlite(),
  }),
);

function hasSqlite() {
  try {
    return loadSqliteDriver() !== undefined;
  } catch {
    // better-sqlite3 is compiled for another Node
    return false;
  }
}
