import { createRequire } from "node:module";
import { join } from "node:path";
import { createMemoryStore } from "#src/service/hooks/store/memory-store.js";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import { loadSqliteDriver, type SqliteDriver } from "#src/service/hooks/store/sqlite/driver.js";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import type { Store } from "#src/service/hooks/store/store.js";
import { temporaryFolder } from "../folders.js";
import { newSchema, postgres } from "../postgres/cluster.js";

/** One kind of store, as tests use it. */
export interface StoreKind {
  readonly name: string;
  /** A new empty store; closed after the test. */
  create(): Store;
  /** Opens the store's content anew, as a process does after the death of the last one. */
  reopen(store: Store): Promise<Store>;
}

/**
 * Runs the same tests on every store. Call at the top of a test file. `isLocal`: on those that one process has for itself
 * alone, since the others go by their server's time.
 */
export function describeStores(
  { title, isLocal = false }: { title: string; isLocal?: boolean },
  tests: (kind: StoreKind) => void,
): void {
  describe(`${title}, memory store`, () => {
    tests({ name: "memory", create: createMemoryStore, reopen: async (store) => store });
  });
  for (const driver of drivers()) {
    describe(`${title}, SQLite store (${driver.name})`, () => {
      const folder = temporaryFolder();
      const open: Store[] = [];
      const create = (): Store => {
        const store = createSqliteStore(join(folder(), "store.db"), { driver });
        open.push(store);
        return store;
      };
      afterEach(async () => {
        for (const store of open.splice(0)) await store.close();
      });
      tests({
        name: driver.name,
        create,
        reopen: async (store) => {
          await store.close();
          return opened(create());
        },
      });
    });
  }
  if (isLocal) return;
  describe(`${title}, PostgreSQL store`, () => {
    const url = postgres();
    const open: Store[] = [];
    let schema = "";
    const create = (): Store => {
      const store = createPostgresStore({ url, schema });
      open.push(store);
      return store;
    };
    beforeEach(() => {
      schema = newSchema();
    });
    afterEach(async () => {
      for (const store of open.splice(0)) await store.close();
    });
    tests({
      name: "PostgreSQL",
      create,
      reopen: async (store) => {
        await store.close();
        return opened(create());
      },
    });
  });
}

async function opened(store: Store): Promise<Store> {
  await store.openQueue(1);
  return store;
}

/** Every SQLite that this Node can load. */
export function drivers(): SqliteDriver[] {
  const require = createRequire(import.meta.url);
  const preferred = loadSqliteDriver();
  if (preferred.name === "better-sqlite3") return [preferred];
  try {
    const other = loadSqliteDriver((name) => require(name === "node:sqlite" ? "not-this-one" : name) as unknown);
    return [preferred, other];
  } catch (error) {
    console.log(`better-sqlite3 is not tested: ${String(error)}`);
    return [preferred];
  }
}
