import { createRequire } from "node:module";
import type { MessagePort } from "node:worker_threads";
import { LatentkitError } from "../../base/errors.js";
import { createCache } from "../../graph/memory/cache.js";
import type { ConnectedHost } from "../../host/checkpoint/host.js";
import type { ModelSettings } from "../../host/checkpoint/settings.js";
import type { RenderSurroundings } from "../defaults.js";
import type { Job } from "../job.js";
import { runSetup } from "../setup-module.js";
import { surroundingsOf } from "../surroundings.js";

const require = createRequire(import.meta.url);

/** Data of a thread's live objects, which all its runs share; the disk cache's folder is absolute. */
export interface ThreadObjects extends Readonly<Pick<Job, "setup" | "cacheDir">> {
  readonly cacheBytes: number;
  /** Models to render with, and the port to the thread that runs their networks. */
  readonly models?: { readonly folders: ModelSettings["folders"]; readonly port: MessagePort };
}

/** Live objects of a thread. */
export interface OpenThread {
  readonly surroundings: RenderSurroundings;
  /** Does the work of a run. */
  readonly within: ConnectedHost["within"];
}

/** Opens the objects of a thread once for all of its runs. Rejects with setup.failed and config.invalid. */
export async function openThread(data: ThreadObjects): Promise<OpenThread> {
  const { models, setup: url } = data;
  const cache = createCache({ policy: "bytes", size: data.cacheBytes });
  const setup = url === undefined ? {} : await runSetup(url);
  if (models === undefined)
    return { surroundings: surroundingsOf(data, { cache }, setup), within: (_, work) => work() };
  if (setup.host !== undefined) {
    throw new LatentkitError("setup.failed", `Setup module ${url}: expected models or its host, received both.`);
  }
  // loaded where there are models alone, in half the time of `import` in Node 20
  const { connectHost } = require("../../host/checkpoint/host.js") as typeof import("../../host/checkpoint/host.js");
  const { host, within } = connectHost(models.folders, models.port);
  return { surroundings: surroundingsOf(data, { cache, host }, setup), within };
}
