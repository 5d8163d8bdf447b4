import { randomUUID } from "node:crypto";
import type { Config, ConfigInput } from "../../render/config/config.js";
import { systemClock } from "../hooks/clock.js";
import { type HookConfigInput, type HookLog, readHookConfig } from "../hooks/hook-config.js";
import type { HookRouter } from "../hooks/hook-service.js";
import { createAuthBudget } from "../hooks/http/access/rates.js";
import { createTokens, createUrlSigner } from "../hooks/http/access/token.js";
import { createRouter } from "../hooks/http/router.js";
import { probeRoutes } from "../hooks/http/routes/probe-routes.js";
import {
  factsOf,
  openAgent,
  openBatchAgent,
  openFiles,
  openModels,
  openPostgres,
  openProcess,
  refusingStore,
  requirePostgres,
  type StartOptions,
} from "../parts.js";
import { createServer } from "../server/server.js";
import { type RunningWorker, startWorker } from "./worker.js";

/** A worker process. */
export interface RunningWorkerProcess {
  /** Address of its probes; undefined if it has no port. */
  readonly url: string | undefined;
  /** Logs an error that no caller awaited, with the run that it came from. */
  fault(what: string, error: unknown): void;
  /** Logs an uncaught error and fails its run. The process should end soon. */
  crash(error: unknown): void;
  /** Claims nothing more, lets running runs end for `drainSeconds` (default: the limit), then gives the others up. */
  close(drainSeconds?: number): Promise<void>;
}

/** Starts a worker from a configuration: agent, store and claims. Throws config.invalid, and then leaves nothing open. */
export async function startWorkerProcess(
  input: ConfigInput,
  options: StartOptions = {},
): Promise<RunningWorkerProcess> {
  const { config, logger, closers, closeAll } = openProcess("startWorkerProcess", input, options);
  requirePostgres(config);
  const { limits, channels } = config;
  try {
    const models = openModels({ ...config, render: true }, logger);
    closers.push(async () => models?.close());
    const agent = await openAgent(config, models);
    closers.push(agent.close);
    const batchAgent = openBatchAgent(config, models);
    closers.push(() => batchAgent.close());
    const files = openFiles(config);
    const store = await openPostgres(config.store);
    closers.push(() => store.close());
    const worker = await refusingStore(() =>
      startWorker({
        agent: agent.run,
        batchAgent,
        store,
        files,
        concurrency: limits.running,
        leaseSeconds: limits.lease_seconds,
        onLoss: channels.web.on_loss,
        eventLimits: { events: limits.run_events, bytes: limits.run_bytes },
        webhooks: channels.web.webhooks,
        retries: channels.web.retries,
        logger,
      }),
    );
    closers.push(() => worker.close(0));
    const server = config.worker_port === undefined ? undefined : serverOf(worker, config, logger);
    const url = (await server?.listen())?.url;
    return {
      url,
      fault: (what, error) => logger.error(factsOf(error, worker.current), what),
      crash(error) {
        const { current } = worker;
        logger.error(factsOf(error, current), "uncaught exception");
        if (current !== undefined) worker.fail(current, error);
      },
      async close(drainSeconds = limits.drain_seconds) {
        await (server ?? worker).close(drainSeconds);
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function serverOf(worker: RunningWorker, { host, worker_port: port, channels, limits }: Config, logger: HookLog) {
  const router = createWorkerRouter(worker, { ...channels.web, limits }, logger);
  return createServer({ hooks: { router, close: worker.close }, host, port, limits, logger });
}

/** Creates an Express router of a worker's /health, /ready and /metrics, with the accesses of its front ends'. */
function createWorkerRouter(worker: RunningWorker, configuration: HookConfigInput, log: HookLog): HookRouter {
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
