import { rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { interruption } from "../../base/abort.js";
import { memoizeLast } from "../../base/lazy.js";
import type { Job } from "../../graph/job.js";
import type { CollectedWrite } from "../../io/files/item-files.js";
import { parseJson } from "../../io/json/lossless.js";
import { failed } from "../../render/batch/runner.js";
import { parseJob } from "../../render/job.js";
import { plainData } from "../../render/plain.js";
import type { RunOutcome } from "../../render/result.js";
import type { RunnerItem } from "../../render/threads/messages.js";
import type { ModelThread } from "../../render/threads/model-thread.js";
import { createThreadPool, type ThreadPool } from "../../render/threads/thread-pool.js";
import type { Agent } from "../agent/agent.js";
import { runFolder } from "../agent/agent-graphs.js";
import { type MessageItem, PACK_NAME, PackWriter, printReply, type ReplyItem, readMessage } from "./batch-message.js";

/** Each item uses the results that stay the same between items, so a small cache keeps them. */
const CACHE_BYTES = 2 ** 26;

/** Options of a batch agent: what a worker decides itself, for any batch. */
export interface BatchAgentOptions
  extends Required<Pick<Job, "outputDir" | "device" | "allowNetwork" | "config">>,
    Pick<Job, "cacheDir"> {
  /** Models of the worker; none if absent. */
  readonly models?: ModelThread;
  readonly threads: number;
}

interface Rendered extends Pick<RunOutcome, "status" | "files" | "warnings" | "leftOut" | "error"> {
  readonly writes: readonly CollectedWrite[];
}

// decisions: Workers return bytes and the batch publishes them
/** Creates the agent of runs that `latentkit render --store` queues. Its threads start with the first of them. */
export function createBatchAgent(options: BatchAgentOptions): Agent & { close(): Promise<void> } {
  const { models, threads, cacheDir, outputDir, device, allowNetwork, config } = options;
  let pool: ThreadPool | undefined;
  const open = () => {
    pool ??= createThreadPool({ threads, models, cacheDir, cacheBytes: CACHE_BYTES });
    return pool;
  };
  const jobOf = memoizeLast((text): Job => {
    const job = parseJob(text);
    return { ...job, device, config, cacheDir, allowNetwork: allowNetwork && job.allowNetwork !== false };
  });
  const agent: Agent = async (run, { signal, addFile }) => {
    const { graph, job, items } = readMessage(run.message);
    const pack = new PackWriter(join(runFolder(resolve(outputDir), run), PACK_NAME));
    try {
      const reply: ReplyItem[] = [];
      for (const item of items) reply.push(await renderItem(open(), graph, jobOf(job), item, pack, signal));
      await pack.close();
      if (!pack.isEmpty) addFile({ path: pack.path, name: PACK_NAME });
      return { response: printReply(reply) };
    } catch (error) {
      await pack.close();
      if (!pack.isEmpty) await rm(dirname(pack.path), { recursive: true, force: true });
      throw error;
    }
  };
  return Object.assign(agent, { close: async () => pool?.close() });
}

async function renderItem(
  threads: ThreadPool,
  graph: string,
  job: Job,
  item: MessageItem,
  pack: PackWriter,
  signal: AbortSignal,
): Promise<ReplyItem> {
  const started = performance.now();
  const { status, files, warnings, leftOut, error, writes } = await renderIn(threads, graph, job, item, signal).catch(
    (error: unknown): Rendered => ({ ...failed(error, []), writes: [] }),
  );
  if (status === "interrupted") throw interruption(signal, "The agent was closed.");
  const isDone = status === "success";
  const sent = error && {
    code: error.code,
    message: error.message,
    details: plainData(error.details, Number) as object,
  };
  const packed = isDone ? await pack.add(writes) : [];
  return {
    status,
    warnings,
    leftOut,
    error: sent,
    writes: packed,
    ms: performance.now() - started,
    files: isDone ? files.map(({ bytes, ...file }) => file) : [],
  };
}

async function renderIn(
  threads: ThreadPool,
  graph: string,
  job: Job,
  { set, passing, names }: MessageItem,
  signal: AbortSignal,
): Promise<Rendered> {
  const item = { values: parseJson(set) as RunnerItem["values"], passing, names, isCollected: true };
  const { collected = [], ...result } = await threads.render(graph, job, { signal, item });
  return { ...result, writes: collected };
}
