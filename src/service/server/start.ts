import { BlockList, isIP } from "node:net";
import { LatentkitError } from "../../base/errors.js";
import { type ConfigInput, parseConfig } from "../../render/config/config.js";
import { defaultHost } from "../../render/surroundings.js";
import { createTokens } from "../hooks/http/access/token.js";
import { createServiceWithRoutes, takesText, warnOfMessages } from "../hooks/service.js";
import {
  factsOf,
  isPostgres,
  openAgent,
  openBatchAgent,
  openFiles,
  openModels,
  openProcess,
  openStore,
  refusingStore,
  type StartOptions,
} from "../parts.js";
import { webRoutes } from "../web/routes.js";
import { createServer } from "./server.js";

/** Shortest token on an address that others can reach: a shorter one could be guessed. */
const SHORTEST_TOKEN = 16;

// 16 letters and digits are 95 bits; shorter tokens could be guessed from a thousand addresses.
// An unhandled rejection belongs to one run: it is logged and ends nothing.
// After an exception in an agent's timer the state is unknown: the process drains and exits with 1.
/** A service that listens. */
export interface RunningService {
  readonly url: string;
  /** Without a token every hook endpoint responds 503. */
  readonly hasToken: boolean;
  /** Whether runs of the default graph take a text as their message; otherwise only an object. */
  readonly takesText: boolean;
  /** Logs an error that no caller awaited, with the run that it came from. */
  fault(what: string, error: unknown): void;
  /** Logs an uncaught error and fails its run. The process should end soon. */
  crash(error: unknown): void;
  /**
   * Reads the graphs of a configuration in place of these, all or none; runs keep those that they were accepted with. All
   * else of a configuration needs a new start. Throws config.invalid, and as a graph that cannot be read.
   */
  reload(input: ConfigInput): void;
  /** Refuses starts, lets running agents end for `drainSeconds` (default: the limit), then stops all. */
  close(drainSeconds?: number): Promise<void>;
}

/**
 * Starts a service from a configuration: agent, store, hooks and server. Throws config.invalid, and then leaves nothing
 * open. Refuses an address that others can reach without a token, or with one of fewer than 16 characters.
 */
export async function startService(input: ConfigInput, options: StartOptions = {}): Promise<RunningService> {
  const { config, logger, closers, closeAll } = openProcess("startService", input, options);
  const { web } = config.channels;
  const { configured: hasToken, shortest } = createTokens(web.hooks_token);
  if (!isLoopback(config.host)) checkReachable(config.host, hasToken ? shortest : undefined);
  const open = (["comfy_api", "comfy_classic"] as const).find((key) => web[key] === "open");
  if (open !== undefined && !isLoopback(config.host)) {
    const sentence = `channels.web.${open}: expected "token" or "none" because host "${config.host}" is reachable by others; received "open".`;
    throw new LatentkitError("config.invalid", sentence);
  }
  if (!config.render && !isPostgres(config.store)) {
    throw new LatentkitError("config.invalid", 'store: "render": false needs a postgres:// store.');
  }
  if (config.page_delete && config.files !== undefined) {
    const sentence = "page_delete cannot be combined with `files`.";
    throw new LatentkitError("config.invalid", sentence);
  }
  try {
    const models = openModels(config, logger);
    closers.push(async () => models?.close());
    const agent = await openAgent(config, models);
    closers.push(agent.close);
    const files = openFiles(config);
    const store = await openStore(config.store);
    const workers = !config.render;
    const batchAgent = config.render && isPostgres(config.store) ? openBatchAgent(config, models) : undefined;
    if (batchAgent !== undefined) closers.push(() => batchAgent.close());
    const own = { agent: agent.run, batchAgent, store, files, workers };
    const options = { ...own, config: { ...web, limits: config.limits }, logger };
    const host = models?.listing ?? (config.render ? defaultHost : undefined);
    const library = { host, models: config.models };
    const deletesIn = config.page_delete ? config.output_dir : undefined;
    const hooks = createServiceWithRoutes(options, (context) =>
      config.page ? webRoutes(context, library, deletesIn) : [],
    );
    closers.push(() => hooks.close(0));
    await refusingStore(() => hooks.runs.open());
    if (await hooks.runs.isPaused()) logger.warn({}, "the queue is paused: no run starts until POST /api/queue/resume");
    const server = createServer({ hooks, host: config.host, port: config.port, limits: config.limits, logger });
    const { url } = await server.listen();
    return {
      url,
      hasToken,
      takesText: takesText(agent.run.graphs),
      fault: (what, error) => logger.error(factsOf(error, hooks.runs.current), what),
      crash(error) {
        const { current } = hooks.runs;
        logger.error(factsOf(error, current), "uncaught exception");
        if (current !== undefined) hooks.runs.fail(current, error);
      },
      reload(input) {
        agent.reload(parseConfig(input, "reload"));
        warnOfMessages(agent.run.graphs, web.incoming, logger);
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
  const sentence = `channels.web.hooks_token: must have at least ${SHORTEST_TOKEN} characters because host "${host}" is reachable by others; received ${shortestToken}.`;
  throw new LatentkitError("config.invalid", sentence);
}

function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host === "localhost";
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8);
  loopback.addAddress("::1", "ipv6");
  return loopback.check(host, family === 4 ? "ipv4" : "ipv6");
}
