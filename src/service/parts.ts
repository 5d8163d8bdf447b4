import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "../base/errors.js";
import type { Host } from "../host/types.js";
import type { Config } from "../render/config/config.js";
import { defaultHost } from "../render/defaults.js";
import type { Agent } from "./agent.js";
import { createGraphAgent } from "./graph-agent.js";
import type { FileStore } from "./hooks/files/file-store.js";
import { createS3Files } from "./hooks/files/s3/s3-files.js";
import { HookError } from "./hooks/hook-error.js";
import { messageOf, stackOf } from "./hooks/runs/safe-json.js";
import { createMemoryStore } from "./hooks/store/memory-store.js";
import { createPostgresStore, type PostgresStore } from "./hooks/store/postgres/postgres-store.js";
import { createSqliteStore } from "./hooks/store/sqlite/sqlite-store.js";
import type { Store } from "./hooks/store/store.js";
import { loadAgent } from "./load-agent.js";

// The parts of a process that a configuration describes, for services and workers.

/** Graph of the agent where the configuration names none. */
const EXAMPLE_GRAPH = fileURLToPath(new URL("../../examples/hook.json", import.meta.url));

/** Copies message and stack of an error: the thrown object may throw again when the logger reads it. */
export function factsOf(error: unknown, runId: string | undefined): object {
  const err = new Error(messageOf(error));
  err.stack = stackOf(error);
  return { run_id: runId, err };
}

/** Path of the agent's graph; undefined where the agent is a module. */
export const graphOf = ({ agent = { graph: EXAMPLE_GRAPH } }: Config): string | undefined =>
  "graph" in agent ? agent.graph : undefined;

/** Opens the agent of a run; one that only checks messages needs no models. */
export async function openAgent(config: Config): Promise<{ run: Agent; host?: Host; close(): Promise<void> }> {
  const settings = config.agent ?? { graph: EXAMPLE_GRAPH };
  if ("module" in settings) return { run: await loadAgent(settings.module), close: async () => {} };
  const { extra_pnginfo: extraPnginfo, cache_dir: cacheDir, ...own } = settings;
  const host = config.models.length === 0 || !config.render ? undefined : await openHost(config.models);
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
  return { run: agent, host: host ?? (config.render ? defaultHost : undefined), close };
}

/** Opens the bucket of a configuration; undefined where files stay on this machine. */
export function openFiles({ files, agent, output_dir }: Config): FileStore | undefined {
  if (files === undefined) return undefined;
  // files of a module are its own
  const isOwn = agent === undefined || "graph" in agent;
  return createS3Files({ url: files, ...(isOwn && { scratch: join(output_dir, "runs") }) });
}

async function openHost(models: readonly string[]): Promise<Host> {
  // loaded where there are models alone: it brings a runtime of its own
  const { createCheckpointHost } = await import("../host/checkpoint/index.js");
  return createCheckpointHost({ models });
}

export const isPostgres = (address: string): boolean => /^postgres(ql)?:/.test(address);

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
