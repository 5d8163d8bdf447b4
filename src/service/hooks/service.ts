import { randomUUID } from "node:crypto";
import { describe, LatentkitError } from "../../errors.js";
import { CHECKED_LATER, checkOptions, hasMethods, type OptionRules, TEXT } from "../../options.js";
import { createLogger } from "../log.js";
import { type Clock, systemClock } from "./clock.js";
import { type HookConfigInput, readHookConfig } from "./hook-config.js";
import { type HookLog, LOGGER } from "./hook-log.js";
import { createAuthBudget } from "./http/access/auth-budget.js";
import { createUrlSigner } from "./http/access/signed-url.js";
import { createTokens } from "./http/access/token.js";
import type { HookContext } from "./http/context.js";
import { createMetrics } from "./http/metrics.js";
import { createRouter } from "./http/router.js";
import { hookRoutes } from "./http/routes/hooks.js";
import { probeRoutes } from "./http/routes/probes.js";
import { runRoutes } from "./http/routes/runs.js";
import { streamRoute } from "./http/routes/stream.js";
import { requestSchemas } from "./http/schemas.js";
import { SliceSource } from "./http/stream/slice-source.js";
import { StreamMemory } from "./http/stream/stream-memory.js";
import { StreamSlots } from "./http/stream/stream-slots.js";
import { Turns } from "./http/stream/turns.js";
import { createRuns } from "./runs.js";
import { createMemoryStore } from "./store/memory.js";
import type { Store } from "./store/store.js";
import type { Agent, HeartbeatResult, HookRouter, RunObserver, Runs } from "./types.js";

const LAST_FRAMES_MS = 1000;

/** Options of `createHookService`. */
export interface HookServiceOptions {
  readonly agent: Agent;
  /** Default: in memory, gone with the process. */
  readonly store?: Store;
  readonly config: HookConfigInput;
  /** A pino logger, or one like it. Default: warnings and errors to stderr. */
  readonly logger?: HookLog;
  readonly clock?: Clock;
}

/** Agent, store and config are checked in words that show no text: it may be a token. */
const HOOK_RULES: OptionRules<HookServiceOptions> = {
  agent: CHECKED_LATER,
  store: CHECKED_LATER,
  config: CHECKED_LATER,
  logger: LOGGER,
  clock: ["a clock with now, monotonic and setTimer", (value) => hasMethods(value, "now", "monotonic", "setTimer")],
};

const HEARTBEAT_RULES: OptionRules<{ sessionKey?: string }> = { sessionKey: TEXT };

/** A hook service: a router to mount, the runs behind it, and its end. */
export interface HookService {
  /** Mounts in any Express application, before its body parsers. Takes its documented paths and no others. */
  readonly router: HookRouter;
  readonly runs: Runs;
  /** Starts one run per session (or of the one session) that takes its pending wake events. */
  heartbeat(options?: { sessionKey?: string }): Promise<HeartbeatResult>;
  /** Refuses starts, lets running agents end for `drainSeconds` (default: the limit), interrupts the rest, ends streams. */
  close(drainSeconds?: number): Promise<void>;
}

/** Joins agent, store and HTTP. Fails with config.invalid. The store is opened by the first request. */
export function createHookService(options: HookServiceOptions): HookService {
  checkEmbedding(options);
  checkOptions("createHookService", options, HOOK_RULES, [], "config.invalid");
  const { agent, clock = systemClock, logger: log = createLogger({ level: "warn" }) } = options;
  const config = readHookConfig(options.config);
  const { web, limits, sessions } = config;
  const tokens = createTokens(options.config.hooks_token);
  const slots = new StreamSlots(limits);
  const metrics = createMetrics({ stats: () => runs.stats(), streams: () => slots.size });
  const runs = createRuns({
    agent,
    store: options.store ?? createMemoryStore(),
    limits,
    onRestart: web.on_restart,
    clock,
    heartbeatSeconds: web.hooks_heartbeat_seconds,
    observer: observe(metrics.observer, log),
  });
  if (!tokens.configured) log.warn({}, "hooks_token is not configured: every hook endpoint answers 503");
  if (sessions.isOverrideAllowed && sessions.prefixes.length === 0) {
    log.warn({}, "hooks_allowed_session_key_prefixes is not set or empty: requests may name any session");
  }
  const memory = new StreamMemory(limits.streams_bytes);
  const context: HookContext = {
    config,
    tokens,
    budget: createAuthBudget({ limit: limits.failed_auth_per_minute, clock }),
    signer: createUrlSigner(tokens),
    schemas: requestSchemas(limits),
    slots,
    memory,
    slices: new SliceSource(runs, memory),
    turns: new Turns(),
    runs,
    metrics,
    log,
    clock,
    newId: randomUUID,
  };
  return {
    router: createRouter(context, [
      ...hookRoutes(context),
      streamRoute(context),
      ...runRoutes(context),
      ...probeRoutes(context),
    ]),
    runs,
    async heartbeat(which = {}) {
      checkOptions("heartbeat", which, HEARTBEAT_RULES);
      return runs.heartbeat(which);
    },
    async close(drainSeconds) {
      try {
        await runs.close(drainSeconds);
      } finally {
        // their last frames are on the way: cut now, a reader would see a broken answer
        await slots.endAll(LAST_FRAMES_MS);
      }
    },
  };
}

/** What JavaScript lets through; configuration values are checked where they are read. */
function checkEmbedding(options: Partial<HookServiceOptions> | undefined): void {
  const check = (isRight: boolean, what: string, expected: string, received: unknown) => {
    if (isRight) return;
    // a text here may be a token
    const shown = typeof received === "string" ? "a text" : describe(received);
    throw new LatentkitError("config.invalid", `createHookService: ${what}expected ${expected}, received ${shown}.`);
  };
  const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
  check(isObject(options), "", "an object of options", options);
  const { agent, config, store } = options!;
  check(typeof agent === "function", '"agent": ', "a function (run, { signal, emit })", agent);
  check(isObject(config), '"config": ', "an object", config);
  check(store === undefined || typeof store?.createRun === "function", '"store": ', "a store", store);
}

/** What the engine reports, counted and logged. */
function observe(counted: Required<RunObserver>, log: HookLog): RunObserver {
  return {
    created(run) {
      counted.created(run);
      log.info({ run_id: run.id, origin: run.origin }, "run accepted");
    },
    started(run) {
      counted.started(run);
      log.info({ run_id: run.id, waited_ms: run.waitedMs }, "run started");
    },
    finished(run) {
      counted.finished(run);
      log.info({ run_id: run.id, state: run.state, ran_ms: run.ranMs }, "run ended");
    },
    fault(what, error) {
      counted.fault(what, error);
      log.error({ err: error }, what);
    },
  };
}
