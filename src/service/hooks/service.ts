import type { HookService, HookServiceOptions } from "./hook-service.js";
import { createServiceWithRoutes } from "./service-with-routes.js";

export type { HookRouter, HookService, HookServiceOptions } from "./hook-service.js";

/** Joins agent, store and HTTP. Fails with config.invalid. The store is opened by the first request. */
export function createHookService(options: HookServiceOptions): HookService {
  return createServiceWithRoutes(options, () => []);
}
