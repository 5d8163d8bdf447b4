import { describe, LatentkitError } from "../base/errors.js";
import { checkOptions, isKeyed } from "../base/options.js";
import { type ConfigInput, parseConfig } from "../render/config/config.js";
import { startWorker } from "./hooks/shared/worker.js";
import { createLogger } from "./log.js";
import { factsOf, isPostgres, openAgent, openFiles, openPostgres, refusingStore } from "./parts.js";
import { START_RULES, type StartOptions } from "./start.js";

/** A worker process. */
export interface RunningWorkerProcess {
  /** Logs an error that no caller awaited, with the run that it came from. */
  fault(what: string, error: unknown): void;
  /** Logs an error that nobody could catch, and fails its run. The process should end soon. */
  crash(error: unknown): void;
  /** Claims nothing more, lets running runs end for `drainSeconds` (default: the limit), then gives the others up. */
  close(drainSeconds?: number): Promise<void>;
}

/** Starts a worker from a configuration: agent, store and claims. Throws config.invalid, and then leaves nothing open. */
export async function startWorkerProcess(
  input: ConfigInput,
  options: StartOptions = {},
): Promise<RunningWorkerProcess> {
  checkOptions("startWorkerProcess", options, START_RULES);
  if (!isKeyed(input)) {
    // a text here may be a token
    const received = typeof input === "string" ? "a text" : describe(input);
    throw new LatentkitError("config.invalid", `startWorkerProcess: expected a configuration, received ${received}.`);
  }
  const config = parseConfig(input, "startWorkerProcess");
  if (!isPostgres(config.store)) {
    throw new LatentkitError("config.invalid", "store: expected postgres://…, which workers share.");
  }
  const logger = createLogger({ destination: options.log && { write: options.log } });
  const { limits, channels } = config;
  const agent = await openAgent({ ...config, render: true });
  try {
    const files = openFiles(config);
    const store = await openPostgres(config.store);
    const worker = await refusingStore(() =>
      startWorker({
        agent: agent.run,
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
    ).catch(async (error: unknown) => {
      await store.close();
      throw error;
    });
    return {
      fault: (what, error) => logger.error(factsOf(error, worker.current), what),
      crash(error) {
        const { current } = worker;
        logger.error(factsOf(error, current), "uncaught exception");
        if (current !== undefined) worker.fail(current, error);
      },
      async close(drainSeconds = limits.drain_seconds) {
        await worker.close(drainSeconds);
        await agent.close();
      },
    };
  } catch (error) {
    await agent.close();
    throw error;
  }
}
