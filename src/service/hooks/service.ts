import { randomUUID } from "node:crypto";
import { describe, LatentkitError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, FLAG, FUNCTION, hasMethods, type OptionRules, TEXT } from "../../base/options.js";
import type { Config } from "../../render/config/config.js";
import type { AgentGraphs } from "../agent/agent.js";
import { createLogger } from "../log.js";
import { systemClock, withWall } from "./clock.js";
import { createComfyApis } from "./comfy/comfy-routes.js";
import { FILE_STORE, localFiles } from "./files/file-store.js";
import { type HookLog, LOGGER, readHookConfig } from "./hook-config.js";
import type { HookRouter, HookService, HookServiceOptions } from "./hook-service.js";
import { createAuthBudget, createStartRates } from "./http/access/rates.js";
import { createTokens, createUrlSigner } from "./http/access/token.js";
import type { Route } from "./http/call.js";
import type { HookContext } from "./http/context.js";
import { createMetrics, observeRuns } from "./http/metrics.js";
import { openApiRoute } from "./http/openapi.js";
import { parameters, requestSchemas } from "./http/request-schemas.js";
import { responseSchemas } from "./http/response-schemas.js";
import { createRouter } from "./http/router.js";
import { deliveryRoutes } from "./http/routes/delivery-routes.js";
import { groupRoutes } from "./http/routes/group-routes.js";
import { againRoute, graphsRoute, hookRoutes } from "./http/routes/hook-routes.js";
import { incomingRoutes } from "./http/routes/incoming-routes.js";
import { runEndedPayload } from "./http/routes/payloads.js";
import { probeRoutes } from "./http/routes/probe-routes.js";
import { queueRoutes, runRoutes } from "./http/routes/run-routes.js";
import { streamRoute } from "./http/routes/stream-route.js";
import { StreamMemory } from "./http/stream/stream-memory.js";
import { StreamSlots, Turns } from "./http/stream/stream-writer.js";
import { createRuns } from "./runs/create-runs.js";
import { createRetryPolicy } from "./runs/outcome.js";
import { createMemoryStore } from "./store/memory-store.js";
import { isShared } from "./store/store.js";
import { Deliverer } from "./webhooks/deliverer.js";
import { createEndpoints, receiversOfEnd } from "./webhooks/endpoints.js";

const LAST_FRAMES_MS = 1000;
/** Most files that a webhook names. */
const WEBHOOK_FILES = 100;

/** The messages about agent, store and config quote no text, which may be a token; so they are checked elsewhere. */
const HOOK_RULES: OptionRules<HookServiceOptions> = {
  agent: CHECKED_LATER,
  batchAgent: FUNCTION,
  store: CHECKED_LATER,
  files: FILE_STORE,
  config: CHECKED_LATER,
  logger: LOGGER,
  workers: FLAG,
  clock: ["a clock with now, monotonic and setTimer", (value) => hasMethods(value, "now", "monotonic", "setTimer")],
};

const HEARTBEAT_RULES: OptionRules<{ sessionKey?: string }> = { sessionKey: TEXT };

/** Joins agent, store and HTTP, as `createHookService` does, with routes beside those of hooks. */
export function createServiceWithRoutes(
  options: HookServiceOptions,
  moreRoutes: (context: HookContext, own: readonly Route[]) => readonly Route[],
): HookService {
  checkTypes(options);
  checkOptions("createHookService", options, HOOK_RULES, [], "config.invalid");
  const { agent, files = localFiles, clock = systemClock, logger: log = createLogger({ level: "warn" }) } = options;
  const config = readHookConfig(options.config);
  const { web, limits, sessions } = config;
  const tokens = createTokens(options.config.hooks_token);
  const slots = new StreamSlots(limits);
  const metrics = createMetrics({
    stats: () => runs.stats(),
    streams: () => slots.size,
    pendingWebhooks: () => deliverer.pending,
    limits,
  });
  const store = options.store ?? createMemoryStore();
  const endpoints = createEndpoints(web.webhooks);
  const observer = observeRuns(metrics.observer, log);
  const runs = createRuns({
    agent,
    batchAgent: options.batchAgent,
    store,
    files,
    limits,
    onRestart: web.on_restart,
    onLoss: web.on_loss,
    retries: createRetryPolicy(web.retries),
    clock,
    heartbeatSeconds: web.hooks_heartbeat_seconds,
    observer: {
      ...observer,
      finished(run) {
        observer.finished?.(run);
        deliverer.wake();
      },
      recovered(lost) {
        observer.recovered?.(lost);
        deliverer.wake();
      },
      previewed: (id, png, node) => comfy.preview(id, png, node),
    },
    receiversOf: (state) => receiversOfEnd(endpoints, state),
    beforeClose: () => deliverer.stop(),
    hasWorker: !options.workers,
  });
  const deliverer = new Deliverer({
    endpoints,
    store,
    limits,
    log,
    // receivers refuse a message of a clock that is wrong
    clock: isShared(store) ? withWall(clock, runs.now) : clock,
    mark: runs.now,
    opened: () => runs.open(),
    bodyOf: async (delivery) => {
      const run = await store.getStatus(delivery.runId, WEBHOOK_FILES);
      return JSON.stringify(runEndedPayload(context, delivery, run));
    },
    attempted: (result, seconds) => metrics.webhookAttempted(result, seconds),
  });
  // YAML reads 1234 as a number
  if (tokens.hasIgnored) log.warn({}, "hooks_token: a value that is not text is ignored, put it in quotes");
  if (!tokens.configured) log.warn({}, "hooks_token is not configured: every hook endpoint responds 503");
  if (sessions.isOverrideAllowed && sessions.prefixes.length === 0) {
    log.warn({}, "hooks_allowed_session_key_prefixes is not set or empty: requests may name any session");
  }
  warnOfMessages(agent.graphs, web.incoming, log);
  const memory = new StreamMemory(limits.streams_bytes);
  const context: HookContext = {
    config,
    tokens,
    budget: createAuthBudget({ limit: limits.failed_auth_per_minute, clock }),
    signer: createUrlSigner(tokens),
    startRates: createStartRates(limits, clock),
    schemas: { ...requestSchemas(limits), ...responseSchemas() },
    parameters: parameters(limits),
    slots,
    memory,
    turns: new Turns(),
    runs,
    files,
    outbox: store,
    wakeDeliverer: () => deliverer.wake(),
    agent,
    rendersHere: !options.workers,
    metrics,
    log,
    clock,
    newId: randomUUID,
  };
  const comfy = createComfyApis(context);
  const described = [
    ...hookRoutes(context),
    graphsRoute(context),
    ...groupRoutes(context),
    ...incomingRoutes(context),
    streamRoute(context),
    ...runRoutes(context),
    ...queueRoutes(context),
    againRoute(context),
    ...deliveryRoutes(context),
    ...comfy.routes,
    ...probeRoutes(context),
  ];
  const own = [...described, ...openApiRoute(context, described)];
  const routes = [...own, ...moreRoutes(context, own)];
  deliverer.wake();
  return {
    // the application hands it requests and responses of Express
    router: createRouter(context, routes, comfy.unknown) as unknown as HookRouter,
    upgrade: comfy.upgrade,
    runs,
    async heartbeat(which = {}) {
      checkOptions("heartbeat", which, HEARTBEAT_RULES);
      return runs.heartbeat(which);
    },
    async close(drainSeconds) {
      try {
        await runs.close(drainSeconds);
      } finally {
        comfy.close();
        // their last frames are on the way: cut now, a reader would see a broken response
        await slots.endAll(LAST_FRAMES_MS);
      }
    },
  };
}

/** Refuses wrong types, without quoting a text; configuration values are checked where they are read. */
function checkTypes(options: Partial<HookServiceOptions> | undefined): void {
  const check = (isRight: boolean, what: string, expected: string, value: unknown) => {
    if (isRight) return;
    // a text here may be a token
    const received = typeof value === "string" ? "a text" : describe(value);
    throw new LatentkitError("config.invalid", `createHookService: ${what}expected ${expected}, received ${received}.`);
  };
  const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
  check(isObject(options), "", "an object of options", options);
  const { agent, config, store, workers } = options!;
  check(typeof agent === "function", '"agent": ', "a function (run, { signal, emit })", agent);
  check(isObject(config), '"config": ', "an object", config);
  check(store === undefined || typeof store?.createRun === "function", '"store": ', "a store", store);
  const isForWorkers = workers !== true || (store !== undefined && isShared(store));
  if (isForWorkers) return;
  const sentence = '"workers" needs a shared store, as createPostgresStore makes one.';
  throw new LatentkitError("config.invalid", `createHookService: ${sentence}`);
}

type Senders = Config["channels"]["web"]["incoming"];

/** Whether runs of the default graph take a text as their message. */
export const takesText = (graphs: AgentGraphs | undefined): boolean =>
  graphs === undefined || keysOf(graphs, graphs.default.name)?.has("message") !== false;

/** Warns of graphs that take no message, and of senders whose messages the default graph refuses. */
export function warnOfMessages(graphs: AgentGraphs | undefined, senders: Senders, log: HookLog): void {
  if (graphs === undefined) return;
  for (const name of graphs.names) {
    if (keysOf(graphs, name)?.size !== 0) continue;
    log.warn({}, `graph "${name}" has nothing to fill: send "{}" as the message, others are refused`);
  }
  const taken = keysOf(graphs, graphs.default.name);
  if (taken === undefined) return;
  for (const [name, { message, placeholders }] of Object.entries(senders)) {
    // what a text holds is known with its payload
    if (placeholders === undefined) continue;
    const own = message === undefined ? [] : ["message"];
    const unknown = [...own, ...Object.keys(placeholders)].find((key) => !taken.has(key));
    if (unknown === undefined) continue;
    const key = JSON.stringify(unknown);
    log.warn({}, `incoming.${name}: the default graph has no key ${key}, so every delivery is refused`);
  }
}

/** Keys of the messages of a graph; undefined where the agent does not tell them. */
function keysOf(graphs: AgentGraphs, name: string | null): ReadonlySet<string> | undefined {
  const schema = name === null ? undefined : (graphs.schemaOf(name) as { properties?: object } | undefined);
  return schema?.properties && new Set(Object.keys(schema.properties));
}
