import { LatentkitError } from "../../../base/errors.js";
import type { Route } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import { maxRunSeconds } from "../runs/terms.js";
import { assetRoutes } from "./asset-routes.js";
import { AssetFiles } from "./assets/asset-files.js";
import { type ComfyParts, outputKeeper } from "./comfy-parts.js";
import { jobEventsRoute } from "./job-events.js";
import { jobRoutes } from "./job-routes.js";
import { Jobs } from "./jobs/jobs.js";
import { sendComfyError } from "./refusals.js";

/** Time beyond the longest wait and run of a job in which its assets stay. */
const SLACK_SECONDS = 3600;

// decisions 278, 279
/** The Comfy API v2 below `/api/v2`, where the configuration opens it. Throws config.invalid for an agent without graphs. */
export function comfyRoutes(context: HookContext): Route[] {
  const { limits, web } = context.config;
  if (!web.comfy_api) return [];
  const { graphs } = context.agent;
  if (graphs === undefined) {
    throw new LatentkitError(
      "config.invalid",
      "comfy_api: expected an agent that renders graphs, received another one.",
    );
  }
  const assets = new AssetFiles({
    folder: graphs.assetsDir,
    mostBytes: limits.uploads_bytes,
    graceMs: (limits.queue_seconds + maxRunSeconds(limits) + SLACK_SECONDS) * 1000,
    now: () => context.runs.now(),
  });
  const parts: ComfyParts = {
    ...{ graphs, assets },
    jobs: new Jobs(context),
    keepOutput: outputKeeper(context, assets),
  };
  const routes = [
    ...jobRoutes(context, parts),
    jobEventsRoute(context, parts),
    ...assetRoutes(context, parts),
    // what is below it and unknown gets the contract's envelope as well
    { name: "v2_unknown", paths: ["/api/v2", "/api/v2/", "/api/v2/*rest"], handlers: {} },
  ];
  return routes.map((route) => ({ access: "token", sendError: sendComfyError, ...route }));
}
