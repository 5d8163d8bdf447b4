import { setMaxListeners } from "node:events";
import { onAbort } from "../base/abort.js";
import {
  COUNT,
  checkedLater,
  checkOptions,
  FUNCTION,
  OBJECT,
  type OptionRules,
  pickOptions,
  rulesWithout,
  SIGNAL,
} from "../base/options.js";
import type { RunEvent } from "../graph/events.js";
import { JOB_RULES, type Job, jobOf } from "../graph/job.js";
import { MODEL_SETTINGS, type ModelSettings } from "../host/checkpoint/settings.js";
import { refuseReservedKeys } from "../io/files/save-images.js";
import { chooseDevice } from "../tensor/device/device.js";
import { EventQueue } from "./event-queue.js";
import { refuseUnsendable } from "./job.js";
import { type RenderResult, type RunOutcome, resultOf } from "./result.js";
import { GRAPH } from "./source.js";
import { ModelThread } from "./threads/model-thread.js";
import type { RunListener } from "./threads/render-thread.js";
import { createThreadPool, type ThreadPool, type ThreadPoolOptions } from "./threads/thread-pool.js";

interface ThreadOptions extends Pick<ThreadPoolOptions, "threads" | "cacheBytes" | "resourceLimits" | "graceMs"> {
  /** Models of the threads, which share one process for their networks; the preview host if absent. */
  readonly models?: ModelSettings;
}

/** Options of `createRenderer`: its threads, and those of `render` that all jobs have unless they set their own. */
export interface RendererOptions extends Omit<Job, "passing" | "validate" | "runId">, ThreadOptions {}

/** Options of one render in a renderer's threads: those of `render` that are plain data, and its graph. */
export interface RendererJob extends Omit<Job, "setup" | "cacheDir" | "validate" | "runId"> {
  /** An object, JSON text, or the path, the file: URL or the bytes of a file, as `render` takes them. */
  graph: string | object;
  /** Interrupts the render, or takes it out of the queue. */
  signal?: AbortSignal;
  /** Receives each event, as `stream` yields them. Must not throw. */
  onEvent?: (event: RunEvent) => void;
}

/** Renders graphs in worker threads, which it keeps until `close`. Idle threads do not keep the process alive. */
export interface Renderer {
  /**
   * Renders as `render` does, without work on the caller's event loop. Values in `outputs` are described in words if
   * they are not scalars. Jobs wait for a free thread in order of the calls. Rejects with thread.lost if the thread
   * ends before the job does; the next job gets a new one. Rejects with run.interrupted if the renderer is closed.
   */
  render(job: RendererJob): Promise<RenderResult>;
  /**
   * Renders and yields the events of `executeGraph`; returns the result. A reader that falls behind misses only
   * progress; one that leaves interrupts the render. A render that is interrupted yields `run-done` with that status,
   * then throws as `render` rejects.
   */
  stream(job: RendererJob): AsyncGenerator<RunEvent, RenderResult, undefined>;
  /** Interrupts running and waiting renders, refuses further ones, and ends the threads. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const THREAD_RULES: OptionRules<ThreadOptions> = {
  threads: checkedLater("a whole number"),
  cacheBytes: ["a number of bytes", (value) => typeof value === "number" && value >= 0],
  resourceLimits: OBJECT,
  graceMs: COUNT,
  models: MODEL_SETTINGS,
};

const RENDERER_RULES: OptionRules<RendererOptions> = {
  ...rulesWithout(JOB_RULES, "passing", "validate", "runId"),
  ...THREAD_RULES,
};

const RENDERER_JOB_RULES: OptionRules<RendererJob> = {
  ...rulesWithout(JOB_RULES, "setup", "cacheDir", "validate", "runId"),
  graph: GRAPH,
  signal: SIGNAL,
  onEvent: FUNCTION,
};

/**
 * Creates a renderer: graphs render in `threads` worker threads (one for each processor, at most 4, if absent), each of
 * which calls the setup module once and keeps its models and cache. Close it to end the threads.
 */
export function createRenderer(options: RendererOptions = {}): Renderer {
  checkOptions("createRenderer", options, RENDERER_RULES);
  const { setup, cacheDir, ...common } = jobOf(options);
  checkJob(common);
  const { models: settings, ...threads } = pickOptions<ThreadOptions>(options, THREAD_RULES);
  const models = settings && new ModelThread(settings);
  const pool = createThreadPool({ ...threads, models, setup, cacheDir });
  const close = async () => {
    await pool.close();
    await models?.close();
  };
  const checked = (name: string, job: RendererJob): RendererJob => {
    checkOptions(name, job, RENDERER_JOB_RULES, ["graph"]);
    return job;
  };
  const run = async (own: RendererJob, listener: RunListener) =>
    renderIn(pool, own.graph, withCommon(common, own), listener);
  return {
    render: async (job) => {
      const { signal, onEvent } = checked("render", job);
      return resultOf(await run(job, { signal, onEvent }), signal, CLOSED);
    },
    stream: (job) => {
      const { signal } = checked("stream", job);
      return follow((listener) => run(job, listener), job, signal);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

const CLOSED = "The renderer was closed; createRenderer makes a new one.";

// Rejects if a thread is lost, while a batch counts a failed attempt: a caller has to retry.
/** A job with the common options that it does not set itself; entries of `set` and `files` are merged. */
function withCommon(common: Job, options: RendererJob): Job {
  const own = jobOf(options);
  const job: Job = { ...common, ...own };
  if (common.set !== undefined) job.set = { ...common.set, ...own.set };
  if (common.files !== undefined) job.files = { ...common.files, ...own.files };
  checkJob(job);
  return job;
}

function checkJob(job: Job): void {
  refuseUnsendable(job);
  refuseReservedKeys(job.extraPnginfo);
  chooseDevice(job.device);
}

async function renderIn(
  pool: ThreadPool,
  graph: string | object,
  job: Job,
  listener: RunListener,
): Promise<RunOutcome> {
  const { written, ...result } = await pool.render(graph, job, listener);
  if (result.error?.code === "thread.lost") throw result.error;
  return result;
}

/** Events of a run, while a reader takes them. */
async function* follow(
  run: (listener: RunListener) => Promise<RunOutcome>,
  { onEvent }: RendererJob,
  signal: AbortSignal | undefined,
): AsyncGenerator<RunEvent, RenderResult, undefined> {
  const queue = new EventQueue<RunEvent>();
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const leave = onAbort(signal, () => stop.abort(signal?.reason));
  let isDone = false;
  const listen = (event: RunEvent) => {
    onEvent?.(event);
    isDone = event.type === "run-done";
    if (event.type !== "progress") queue.add(event);
    else queue.replace(event, (waiting) => waiting.type === "progress" && waiting.nodeId === event.nodeId);
  };
  const done = run({ signal: stop.signal, onEvent: listen }).finally(() => queue.end());
  // it may reject before it is awaited
  done.catch(() => {});
  try {
    for (let events = await queue.take(); events !== undefined; events = await queue.take()) yield* events;
    const outcome = await done;
    if (!isDone) yield* ending(outcome);
    return resultOf(outcome, signal, CLOSED);
  } finally {
    stop.abort();
    leave();
    queue.abandon();
    await done.catch(() => {});
  }
}

/** Last events of a run that was given up or never began. */
function* ending({ status, outputs, ui }: RunOutcome): Generator<RunEvent, void, undefined> {
  const at = Date.now();
  if (status === "interrupted") yield { type: "interrupted", at };
  yield { type: "run-done", status, outputs, ui: { ...ui } as Record<string, Record<string, unknown[]>>, at };
}
