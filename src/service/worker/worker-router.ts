import { randomUUID } from "node:crypto";
import { systemClock } from "../hooks/clock.js";
import { type HookConfigInput, readHookConfig } from "../hooks/hook-config.js";
import type { HookLog } from "../hooks/hook-log.js";
import { createAuthBudget } from "../hooks/http/access/auth-budget.js";
import { createUrlSigner } from "../hooks/http/access/signed-url.js";
import { createTokens } from "../hooks/http/access/token.js";
import { createRouter } from "../hooks/http/router.js";
import { probeRoutes } from "../hooks/http/routes/probe-routes.js";
import type { HookRouter } from "../hooks/service.js";
import type { RunningWorker } from "./worker.js";

/** Creates an Express router of a worker's /health, /ready and /metrics, with the accesses of its front ends'. */
export function createWorkerRouter(worker: RunningWorker, configuration: HookConfigInput, log: HookLog): HookRouter {
  const config = readHookConfig(configuration);
  const tokens = createTokens(configuration.hooks_token);
  const context = {
    config,
    tokens,
    budget: createAuthBudget({ limit: config.limits.failed_auth_per_minute, clock: systemClock }),
    signer: createUrlSigner(tokens),
    runs: {
      get closing() {
        return worker.closing;
      },
      ping: () => worker.ping(),
      now: () => Date.now(),
    },
    metrics: { ...worker.metrics, countRequest() {}, authFailed() {} },
    log,
    clock: systemClock,
    newId: randomUUID,
  };
  return createRouter(context, probeRoutes(context)) as unknown as HookRouter;
}
