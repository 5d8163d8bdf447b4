import { createDiskCache } from "../graph/disk-cache/disk-cache.js";
import type { Surroundings } from "../graph/surroundings.js";
import { type RenderSurroundings, withDefaults } from "./defaults.js";
import type { Job } from "./job.js";
import { runSetup, type Setup } from "./setup-module.js";

/** Live objects that a job names: its disk cache, and the result of its setup module. Those at hand have precedence. */
export function surroundingsOf(
  { cacheDir }: Pick<Job, "cacheDir">,
  live: Surroundings,
  setup: Setup = {},
): RenderSurroundings {
  const { registry = setup.registry, host = setup.host } = live;
  const diskCache = live.diskCache ?? (cacheDir === undefined ? undefined : createDiskCache({ folder: cacheDir }));
  return withDefaults({ ...live, registry, host, diskCache });
}

/** Surroundings of a job, for which its setup module is called. Fails with setup.failed. */
export async function openSurroundings(
  job: Pick<Job, "setup" | "cacheDir">,
  live: Surroundings,
): Promise<RenderSurroundings> {
  return surroundingsOf(job, live, job.setup === undefined ? undefined : await runSetup(job.setup));
}
