import { rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { interruption } from "../../base/abort.js";
import { lastOf } from "../../base/last-of.js";
import { createCache } from "../../graph/memory/cache.js";
import type { Surroundings } from "../../graph/surroundings.js";
import { CollectedFiles, type CollectedWrite } from "../../io/files/collected-files.js";
import { parseJson } from "../../io/json/lossless.js";
import { failed } from "../../render/batch/runner.js";
import { type Job, parseJob } from "../../render/job.js";
import { plain } from "../../render/plain.js";
import { renderJob } from "../../render/render.js";
import type { RunOutcome } from "../../render/result.js";
import { frozenGraph } from "../../render/source.js";
import { surroundingsOf } from "../../render/surroundings.js";
import { createThreadPool } from "../../render/threads/thread-pool.js";
import type { Agent } from "../agent.js";
import { type MessageItem, PACK_NAME, printReply, type ReplyItem, readMessage } from "./batch-message.js";
import { PackWriter } from "./pack.js";

/** Each item uses what stays the same between items, so a small cache keeps it. */
const CACHE_BYTES = 2 ** 26;

/** Options of a batch agent: what a worker decides for itself, whatever batch it renders. */
export interface BatchAgentOptions
  extends Required<Pick<Job, "outputDir" | "device" | "allowNetwork" | "config">>,
    Pick<Job, "cacheDir"> {
  /** Models of the worker; their graphs are rendered in the calling thread. */
  readonly host: Surroundings["host"];
  readonly threads: number;
}

interface Rendered extends Pick<RunOutcome, "status" | "files" | "warnings" | "leftOut" | "error"> {
  readonly writes: readonly CollectedWrite[];
}

type RenderItem = (graph: string, job: Job, item: MessageItem, signal: AbortSignal) => Promise<Rendered>;

// decision 265
/** Creates the agent of runs that `latentkit render --store` queues. Its threads start with the first of them. */
export function createBatchAgent(options: BatchAgentOptions): Agent & { close(): Promise<void> } {
  const { host, threads, cacheDir, outputDir, device, allowNetwork, config } = options;
  let renderer: ReturnType<typeof inThreads> | undefined;
  const open = () => {
    renderer ??= host === undefined ? inThreads(threads, cacheDir) : withHost(host, cacheDir);
    return renderer;
  };
  const jobOf = lastOf((text): Job => {
    const job = parseJob(text);
    return { ...job, device, config, cacheDir, allowNetwork: allowNetwork && job.allowNetwork !== false };
  });
  const agent: Agent = async (run, { signal, addFile }) => {
    const { graph, job, items } = readMessage(run.message);
    // a worker that was lost may still write: the next one never shares its folder
    const folder = join(resolve(outputDir), "runs", run.attempt === undefined ? run.id : `${run.id}.${run.attempt}`);
    const pack = new PackWriter(join(folder, PACK_NAME));
    try {
      const reply: ReplyItem[] = [];
      for (const item of items) reply.push(await renderItem(open().render, graph, jobOf(job), item, pack, signal));
      await pack.close();
      if (!pack.isEmpty) addFile({ path: pack.path, name: PACK_NAME });
      return { response: printReply(reply) };
    } catch (error) {
      await pack.close();
      if (!pack.isEmpty) await rm(dirname(pack.path), { recursive: true, force: true });
      throw error;
    }
  };
  return Object.assign(agent, { close: async () => renderer?.close() });
}

async function renderItem(
  render: RenderItem,
  graph: string,
  job: Job,
  item: MessageItem,
  pack: PackWriter,
  signal: AbortSignal,
): Promise<ReplyItem> {
  const started = performance.now();
  const { status, files, warnings, leftOut, error, writes } = await render(graph, job, item, signal).catch(
    (error: unknown): Rendered => ({ ...failed(error, []), writes: [] }),
  );
  if (status === "interrupted") throw interruption(signal, "The agent was closed.");
  const isDone = status === "success";
  const sent = error && { code: error.code, message: error.message, details: plain(error.details, Number) as object };
  const packed = isDone ? await pack.add(writes) : [];
  return {
    ...{ status, warnings, leftOut, error: sent, writes: packed, ms: performance.now() - started },
    files: isDone ? files.map(({ bytes, ...file }) => file) : [],
  };
}

function inThreads(threads: number, cacheDir: string | undefined): { render: RenderItem; close(): Promise<void> } {
  const pool = createThreadPool({ threads, cacheDir, cacheBytes: CACHE_BYTES });
  return {
    async render(graph, job, { set, passing, names }, signal) {
      const item = { set: { ...job.set, ...valuesOf(set) }, passing, names, isCollected: true };
      const { collected = [], ...result } = await pool.render(graph, job, { signal, item });
      return { ...result, writes: collected };
    },
    close: () => pool.close(),
  };
}

function withHost(
  host: Surroundings["host"],
  cacheDir: string | undefined,
): { render: RenderItem; close(): Promise<void> } {
  const cache = createCache({ policy: "bytes", size: CACHE_BYTES });
  const surroundings = surroundingsOf({ cacheDir }, { host, cache });
  const graphOf = lastOf((text: string) => frozenGraph(parseJson(text) as object));
  return {
    async render(graph, job, { set, passing, names }, signal) {
      const files = new CollectedFiles(names, job.outputDir!);
      const own = { ...job, set: { ...job.set, ...valuesOf(set) }, passing };
      const result = await renderJob(graphOf(graph), own, { ...surroundings, signal, outputHandling: { files } });
      return { ...result, writes: files.writes };
    },
    close: async () => {},
  };
}

const valuesOf = (set: string) => parseJson(set) as Record<string, unknown>;
