// The parts of a process that a configuration describes, for services and workers.
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Logger } from "pino";
import { describe, LatentkitError } from "../base/errors.js";
import { checkOptions, FUNCTION, isKeyed, type OptionRules } from "../base/options.js";
import type { DeviceReport } from "../host/checkpoint/session/runtime.js";
import { type Config, type ConfigInput, parseConfig } from "../render/config/config.js";
import { ModelThread } from "../render/threads/model-thread.js";
import type { Agent } from "./agent/agent.js";
import type { GraphSources } from "./agent/agent-graphs.js";
import { graphAgentWith } from "./agent/graph-agent.js";
import { tracedAgent } from "./agent/traced-agent.js";
import { createBatchAgent } from "./batch/batch-agent.js";
import type { FileStore } from "./hooks/files/file-store.js";
import { createS3Files } from "./hooks/files/s3-files.js";
import { HookError } from "./hooks/hook-error.js";
import { messageOf, stackOf } from "./hooks/runs/safe-json.js";
import { createMemoryStore } from "./hooks/store/memory-store.js";
import { createPostgresStore, type PostgresStore } from "./hooks/store/postgres/postgres-store.js";
import { createSqliteStore } from "./hooks/store/sqlite/sqlite-store.js";
import type { Store } from "./hooks/store/store.js";
import { createLogger } from "./log.js";

/** Graph of the agent if the configuration does not name one. */
const EXAMPLE_GRAPH = fileURLToPath(new URL("../../examples/hook.json", import.meta.url));

/** Options of `startService` and `startWorkerProcess`. */
export interface StartOptions {
  /** Receives the lines of the log, JSON. Default: they go to stderr. */
  readonly log?: (line: string) => void;
}

const START_RULES: OptionRules<StartOptions> = { log: FUNCTION };

/** Reads the configuration and options of the function of this name, and opens the log. Throws config.invalid. */
export function openProcess(name: string, input: ConfigInput, options: StartOptions) {
  checkOptions(name, options, START_RULES);
  if (!isKeyed(input)) {
    // a text here may be a token
    const received = typeof input === "string" ? "a text" : describe(input);
    throw new LatentkitError("config.invalid", `${name}: expected a configuration, received ${received}.`);
  }
  const config = parseConfig(input, name);
  const logger = createLogger({ destination: options.log && { write: options.log } });
  const closers: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  return { config, logger, closers, closeAll };
}

/** Copies message and stack of an error: the thrown object may throw again when the logger reads it. */
export function factsOf(error: unknown, runId: string | undefined): object {
  const err = new Error(messageOf(error));
  err.stack = stackOf(error);
  return { run_id: runId, err };
}

/** The agent that a configuration describes. */
interface OpenAgent {
  readonly run: Agent;
  /** Reads the graphs of a configuration in place of these; absent for an agent from a module. */
  reload(config: Config): void;
  close(): Promise<void>;
}

/** Opens the models of a configuration; undefined if it names none, or if this process does not render. */
export function openModels(config: Config, logger: Logger): ModelThread | undefined {
  const { models: folders, models_device: device, models_memory: memory, render } = config;
  if (folders.length === 0 || !render) return undefined;
  const onDevice = ({ reason, ...facts }: DeviceReport) =>
    reason === undefined
      ? logger.info({ device: facts }, "networks run on a GPU")
      : logger.warn({}, `networks run on the CPU: ${reason}`);
  return new ModelThread({ folders, device, memory }, { onDevice });
}

/** Opens the agent of a run, with the models that it renders with. */
export async function openAgent(config: Config, models?: ModelThread): Promise<OpenAgent> {
  const agent = await openUntraced(config, models);
  return config.traces ? { ...agent, run: tracedAgent(agent.run) } : agent;
}

async function openUntraced(config: Config, models: ModelThread | undefined): Promise<OpenAgent> {
  const settings = config.agent;
  if (settings !== undefined && "module" in settings) {
    return { run: await loadAgent(settings.module), close: async () => {}, reload: () => {} };
  }
  const { extra_pnginfo: extraPnginfo, cache_dir: cacheDir, ...own } = { ...settings, ...sourcesOf(config) };
  const options = {
    ...own,
    extraPnginfo,
    cacheDir,
    outputDir: config.output_dir,
    allowNetwork: config.allow_network,
    config: { remote_image_api: config.remote_image_api },
    device: config.device,
    format: config.format,
    parameters: config.parameters,
    threads: threadsOf(config),
  };
  const agent = graphAgentWith(options, models);
  return { run: agent, close: () => agent.close(), reload: (config) => agent.reload(sourcesOf(config)) };
}

/** Graphs of a configuration; the example if it names none. */
function sourcesOf({ agent = {} }: Config): GraphSources {
  if ("module" in agent) {
    throw new LatentkitError(
      "config.invalid",
      "agent: cannot be reloaded as a module; the service was started with graphs.",
    );
  }
  const { graph, graphs } = agent;
  return graph === undefined && Object.keys(graphs ?? {}).length === 0 ? { graph: EXAMPLE_GRAPH } : { graph, graphs };
}

/** Opens the agent of runs that batches queue. */
export function openBatchAgent(config: Config, models?: ModelThread): ReturnType<typeof createBatchAgent> {
  const { agent, output_dir: outputDir, device, allow_network: allowNetwork, remote_image_api } = config;
  const cacheDir = agent !== undefined && !("module" in agent) ? agent.cache_dir : undefined;
  const own = { outputDir, device, allowNetwork, config: { remote_image_api }, cacheDir };
  return createBatchAgent({ ...own, models, threads: threadsOf(config) });
}

const threadsOf = ({ limits }: Config) => Math.min(limits.running, availableParallelism());

/** Opens the bucket of a configuration; undefined if files stay on this machine. */
export function openFiles({ files, agent, output_dir }: Config): FileStore | undefined {
  if (files === undefined) return undefined;
  // files of a module are its own
  const isOwn = agent === undefined || !("module" in agent);
  return createS3Files({ url: files, ...(isOwn && { scratch: join(output_dir, "runs") }) });
}

export const isPostgres = (address: string): boolean => /^postgres(ql)?:/.test(address);

/** Throws config.invalid for a store that workers cannot share. */
export function requirePostgres({ store }: Config): void {
  if (isPostgres(store)) return;
  throw new LatentkitError("config.invalid", "store: expected postgres://…, which workers share.");
}

export async function openStore(address: string): Promise<Store> {
  if (address === "memory:") return createMemoryStore();
  if (address.startsWith("sqlite:")) return openSqlite(address.slice("sqlite:".length));
  return openPostgres(address);
}

export async function openPostgres(url: string): Promise<PostgresStore> {
  const store = createPostgresStore({ url });
  try {
    // a server that cannot be reached is a wrong configuration here
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Turns a store that refuses this process into a wrong configuration: another one uses it, or it fails. */
export async function refusingStore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
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

/**
 * Loads the agent of a module's default export: `(run, { signal, emit, addFile }) => Promise<{ response }>`. It runs on
 * the service's own thread. Fails with config.invalid.
 *
 * @internal
 */
export async function loadAgent(path: string): Promise<Agent> {
  const file = resolve(path);
  if (!existsSync(file)) throw invalid(file, "the file does not exist");
  const module = await import(pathToFileURL(file).href).catch((cause: unknown) => {
    throw invalid(file, `it cannot be loaded: ${messageOf(cause)}`, cause);
  });
  const agent: unknown = (module as { default?: unknown }).default;
  if (typeof agent === "function") return agent as Agent;
  const received = agent === undefined ? "none" : describe(agent);
  throw invalid(file, `expected a function (run, { signal, emit }) as its default export, received ${received}`);
}

const invalid = (file: string, why: string, cause?: unknown) =>
  new LatentkitError("config.invalid", `Agent module ${file}: ${why}.`, {}, { cause });
