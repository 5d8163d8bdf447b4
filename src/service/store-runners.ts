import { LatentkitError } from "../base/errors.js";
import type { CreateRunner } from "../render/batch/runner.js";
import type { Config } from "../render/config/config.js";
import { BatchRuns } from "./batch/batch-runs.js";
import { RUNS, StoreRunner } from "./batch/store-runner.js";
import { localFiles } from "./hooks/files/local-files.js";
import { isPostgres, openFiles, openPostgres, refusingStore } from "./parts.js";

/** Makes runners whose items the workers of a configuration's store render. Throws config.invalid. */
export function createStoreRunners(config: Config, report: (text: string) => void): CreateRunner {
  if (!isPostgres(config.store)) {
    throw new LatentkitError("config.invalid", "store: expected postgres://…, which workers share.");
  }
  const files = openFiles(config) ?? localFiles;
  return (graph, job, { signal }, concurrency = RUNS) => {
    const openRuns = async (changed: () => void) => {
      const store = await openPostgres(config.store);
      const runs = new BatchRuns(store, { changed });
      await refusingStore(() => runs.open()).catch(async (error: unknown) => {
        await store.close();
        throw error;
      });
      return runs;
    };
    return new StoreRunner({ graph, job, signal, concurrency, files, openRuns, report });
  };
}
