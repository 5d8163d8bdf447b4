import type { HookService, HookServiceOptions } from "./hook-service.js";
import { createServiceWithRoutes } from "./service.js";

// apart from the service: its types must not need those of Express
/** Joins agent, store and HTTP. Fails with config.invalid. The store is opened by the first request. */
export function createHookService(options: HookServiceOptions): HookService {
  return createServiceWithRoutes(options, () => []);
}
