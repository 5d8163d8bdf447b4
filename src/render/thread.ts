// Runs in a worker thread: one graph after the other, as render-thread.ts asks.
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type ErrorCode, type ErrorDetails, LatentkitError } from "../errors.js";
import { createCache } from "../graph/cache.js";
import type { RunEvent } from "../graph/events.js";
import { parseJson } from "../io/json-lossless.js";
import type { NodeConfig } from "../nodes/define.js";
import { defaultHost, defaultRegistry } from "./defaults.js";
import { plainEvent } from "./plain.js";
import { type MetadataPolicy, type RenderOptions, render, runSetup } from "./render.js";

/** What a thread is started with. */
export interface ThreadData {
  /** Address of the setup module. */
  readonly setup?: string;
  readonly cacheBytes: number;
}

/** One run, as data that can be sent. */
export interface ThreadRun {
  /** A path or JSON text. */
  readonly graph: string;
  /** `{ set, extraPnginfo }` as JSON, which keeps every digit. */
  readonly json: string;
  readonly targets?: readonly string[];
  readonly outputDir: string;
  readonly inputDir?: string;
  readonly classAliases?: Readonly<Record<string, string>>;
  readonly metadata?: MetadataPolicy;
  readonly config?: NodeConfig;
}

/** Without code: an error that is not the library's own. */
export interface SentError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly stack?: string;
}

export type ToThread = { readonly type: "run"; readonly run: ThreadRun } | { readonly type: "abort" };
export type FromThread =
  /** A RunEvent, its errors as SentError and its values in words. */
  | { readonly type: "event"; readonly event: RunEvent }
  | { readonly type: "end" }
  /** Before anything was written; `isFatal`: the thread is of no use. */
  | { readonly type: "refused"; readonly error: SentError; readonly isFatal: boolean };

/** A node that reports each of a million steps would fill the other thread's queue. */
const PROGRESS_EVERY_MS = 40;

function serve(port: MessagePort, data: ThreadData): void {
  const cache = createCache({ policy: "bytes", size: data.cacheBytes });
  let place: Pick<RenderOptions, "registry" | "host"> | undefined;
  let controller = new AbortController();
  const send = (message: FromThread) => port.postMessage(message);

  const run = async (asked: ThreadRun) => {
    try {
      place ??= await prepare(data.setup);
    } catch (error) {
      send({ type: "refused", error: sent(error), isFatal: true });
      return;
    }
    const { graph, json, ...options } = asked;
    const isDue = createThrottle();
    const onEvent = (event: RunEvent) => {
      if (isDue(event)) send({ type: "event", event: sendable(event) });
    };
    try {
      const { signal } = controller;
      await render(graph, { ...options, ...(parseJson(json) as object), ...place, cache, signal, onEvent });
      send({ type: "end" });
    } catch (error) {
      send({ type: "refused", error: sent(error), isFatal: false });
    }
  };

  port.on("message", (message: ToThread) => {
    if (message.type === "run") {
      controller = new AbortController();
      void run(message.run);
    } else controller.abort();
  });
}

/** The setup's nodes and host, once for all runs: models are loaded once, and the cache knows the host again. */
async function prepare(setup: string | undefined): Promise<Pick<RenderOptions, "registry" | "host">> {
  try {
    const made = setup === undefined ? {} : await runSetup(new URL(setup));
    return { registry: made?.registry ?? defaultRegistry, host: made?.host ?? defaultHost };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LatentkitError("setup.failed", `Setup module ${setup}: ${why}`, {}, { cause });
  }
}

function createThrottle(): (event: RunEvent) => boolean {
  let next = 0;
  return (event) => {
    if (event.type !== "progress" || event.value >= event.max) return true;
    const now = performance.now();
    if (now < next) return false;
    next = now + PROGRESS_EVERY_MS;
    return true;
  };
}

function sendable(event: RunEvent): RunEvent {
  if (event.type === "progress") return { ...event, preview: undefined };
  const copy = plainEvent(event, Number) as RunEvent;
  return event.type === "node-error" ? ({ ...copy, error: sent(event.error) } as RunEvent) : copy;
}

function sent(error: unknown): SentError {
  if (error instanceof LatentkitError) {
    const { code, message, details, stack } = error;
    return { code, message, details: { ...details }, stack };
  }
  return error instanceof Error ? { message: error.message, stack: error.stack } : { message: String(error) };
}

if (parentPort === null) throw new Error("render/thread.js runs in a worker thread only.");
serve(parentPort, workerData as ThreadData);
