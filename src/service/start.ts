import { BlockList, isIP } from "node:net";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, LatentkitError } from "../base/errors.js";
import { checkOptions, FUNCTION, isKeyed, type OptionRules } from "../base/options.js";
import type { Host } from "../host/types.js";
import { type Config, type ConfigInput, parseConfig } from "../render/config/config.js";
import type { Agent } from "./agent.js";
import { createGraphAgent } from "./graph-agent.js";
import { HookError } from "./hooks/hook-error.js";
import { createTokens } from "./hooks/http/access/token.js";
import type { Runs } from "./hooks/runs/create-runs.js";
import { messageOf, stackOf } from "./hooks/runs/safe-json.js";
import { createHookService } from "./hooks/service.js";
import { createMemoryStore } from "./hooks/store/memory-store.js";
import { createPostgresStore } from "./hooks/store/postgres/postgres-store.js";
import { createSqliteStore } from "./hooks/store/sqlite/sqlite-store.js";
import type { Store } from "./hooks/store/store.js";
import { loadAgent } from "./load-agent.js";
import { createLogger } from "./log.js";
import { createServer } from "./server.js";

/** Shortest token on an address that others can reach: a shorter one could be guessed. */
const SHORTEST_TOKEN = 16;

/** Graph of the agent where the configuration names none. */
const EXAMPLE_GRAPH = fileURLToPath(new URL("../../examples/hook.json", import.meta.url));

// decisions 151, 185, 186
/** A service that listens. */
export interface RunningService {
  readonly url: string;
  /** Without a token every hook endpoint responds 503. */
  readonly hasToken: boolean;
  /** Logs an error that no caller awaited, with the run that it came from. */
  fault(what: string, error: unknown): void;
  /** Logs an error that nobody could catch, and fails its run. The process should end soon. */
  crash(error: unknown): void;
  /** Refuses starts, lets running agents end for `drainSeconds` (default: the limit), then stops all. */
  close(drainSeconds?: number): Promise<void>;
}

/** Options of `startService`. */
export interface StartOptions {
  /** Receives the lines of the log, JSON. Default: they go to stderr. */
  readonly log?: (line: string) => void;
}

const START_RULES: OptionRules<StartOptions> = { log: FUNCTION };

/**
 * Starts a service from a configuration: agent, store, hooks and server. Throws config.invalid, and then leaves nothing
 * open. Refuses an address that others can reach without a token, or with one of fewer than 16 characters.
 */
export async function startService(input: ConfigInput, options: StartOptions = {}): Promise<RunningService> {
  checkOptions("startService", options, START_RULES);
  if (!isKeyed(input)) {
    // a text here may be a token
    const received = typeof input === "string" ? "a text" : describe(input);
    throw new LatentkitError("config.invalid", `startService: expected a configuration, received ${received}.`);
  }
  const config = parseConfig(input, "startService");
  const logger = createLogger({ destination: options.log && { write: options.log } });
  const { web } = config.channels;
  const { configured: hasToken, shortest } = createTokens(web.hooks_token);
  if (!isLoopback(config.host)) checkReachable(config.host, hasToken ? shortest : undefined);
  const closers: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const agent = await openAgent(config);
    closers.push(agent.close);
    const store = await openStore(config.store);
    const hooks = createHookService({ agent: agent.run, store, config: { ...web, limits: config.limits }, logger });
    closers.push(() => hooks.close(0));
    await openRuns(hooks.runs);
    const server = createServer({ hooks, host: config.host, port: config.port, limits: config.limits, logger });
    const { url } = await server.listen();
    return {
      url,
      hasToken,
      fault: (what, error) => logger.error(factsOf(error, hooks.runs.current), what),
      crash(error) {
        const { current } = hooks.runs;
        logger.error(factsOf(error, current), "uncaught exception");
        if (current !== undefined) hooks.runs.fail(current, error);
      },
      async close(drainSeconds) {
        await server.close(drainSeconds);
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function checkReachable(host: string, shortestToken: number | undefined): void {
  if (shortestToken === undefined) {
    const sentence = `host: expected a loopback address while channels.web.hooks_token is not set, received "${host}".`;
    throw new LatentkitError("config.invalid", sentence);
  }
  if (shortestToken >= SHORTEST_TOKEN) return;
  const sentence = `channels.web.hooks_token: expected at least ${SHORTEST_TOKEN} characters where others can reach the service (host "${host}"), received ${shortestToken}.`;
  throw new LatentkitError("config.invalid", sentence);
}

/** Copies message and stack of an error: the thrown object may throw again when the logger reads it. */
function factsOf(error: unknown, runId: string | undefined): object {
  const err = new Error(messageOf(error));
  err.stack = stackOf(error);
  return { run_id: runId, err };
}

async function openAgent(config: Config): Promise<{ run: Agent; close(): Promise<void> }> {
  const settings = config.agent ?? { graph: EXAMPLE_GRAPH };
  if ("module" in settings) return { run: await loadAgent(settings.module), close: async () => {} };
  const { extra_pnginfo: extraPnginfo, cache_dir: cacheDir, ...own } = settings;
  const host = config.models.length === 0 ? undefined : await openHost(config.models);
  const agent = createGraphAgent({
    ...own,
    host,
    extraPnginfo,
    cacheDir,
    outputDir: config.output_dir,
    allowNetwork: config.allow_network,
    config: { remote_image_api: config.remote_image_api },
    device: config.device,
    format: config.format,
    parameters: config.parameters,
    threads: Math.min(config.limits.running, availableParallelism()),
  });
  const close = async () => {
    await agent.close();
    await host?.close?.();
  };
  return { run: agent, close };
}

async function openHost(models: readonly string[]): Promise<Host> {
  // loaded where there are models alone: it brings a runtime of its own
  const { createCheckpointHost } = await import("../host/checkpoint/index.js");
  return createCheckpointHost({ models });
}

async function openStore(address: string): Promise<Store> {
  if (address === "memory:") return createMemoryStore();
  if (address.startsWith("sqlite:")) return openSqlite(address.slice("sqlite:".length));
  const store = createPostgresStore({ url: address });
  try {
    // a server that cannot be reached is a wrong configuration here
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Recovers the runs of an earlier process; a store that another one uses is a wrong configuration here. */
async function openRuns(runs: Runs): Promise<void> {
  try {
    await runs.open();
  } catch (cause) {
    if (!(cause instanceof HookError)) throw cause;
    const reason = cause.cause instanceof Error ? ` (${messageOf(cause.cause)})` : "";
    throw new LatentkitError("config.invalid", `store: ${cause.message}${reason}.`, {}, { cause });
  }
}

/** Opens the store; a file that cannot be opened is a wrong configuration here. */
function openSqlite(path: string): Store {
  try {
    return createSqliteStore(path);
  } catch (cause) {
    if (!(cause instanceof LatentkitError) || cause.code === "config.invalid") throw cause;
    throw new LatentkitError("config.invalid", cause.message, {}, { cause });
  }
}

function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host === "localhost";
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8);
  loopback.addAddress("::1", "ipv6");
  return loopback.check(host, family === 4 ? "ipv4" : "ipv6");
}
