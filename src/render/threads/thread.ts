// Runs in a worker thread: graphs as render-thread.ts asks for them.
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type ErrorCode, type ErrorDetails, LatentkitError } from "../../errors.js";
import { createDiskCache } from "../../graph/disk-cache/disk-cache.js";
import type { RunEvent } from "../../graph/events.js";
import { createCache } from "../../graph/memory/cache.js";
import { parseGraph } from "../../graph/parse.js";
import { blockingDisk } from "../../io/blocking-disk.js";
import { ItemFiles, type ItemNames, type WrittenFile } from "../../io/item-files.js";
import { parseJson } from "../../io/json-lossless.js";
import type { NodeConfig } from "../../nodes/define.js";
import type { DeviceChoice } from "../../tensor/device/choice.js";
import { defaultHost, defaultRegistry } from "../defaults.js";
import { plainEvent, plainResult } from "../plain.js";
import { refuseWrong } from "../refuse-wrong.js";
import {
  type MetadataPolicy,
  type RenderOptions,
  type RenderResult,
  type RenderSettings,
  renderChecked,
} from "../render.js";
import { type Made, runSetup } from "../setup-module.js";
import { frozenGraph, readGraph } from "../source.js";
import { setMark } from "./mark.js";

/** What a thread is started with. */
export interface ThreadData {
  /** Address of the setup module. */
  readonly setup?: string;
  readonly cacheBytes: number;
  /** See `OutputHandling`. */
  readonly encodesHere: boolean;
  /** Folder of a disk cache. Absolute. */
  readonly cacheDir?: string;
}

/** One run, as data that can be sent. */
export interface ThreadRun {
  /** A path or JSON text; that of the message before where absent. */
  readonly graph?: string;
  /** `{ set, extraPnginfo }` as JSON, which keeps every digit. */
  readonly json: string;
  readonly targets?: readonly string[];
  readonly outputDir: string;
  readonly inputDir?: string;
  readonly classAliases?: Readonly<Record<string, string>>;
  readonly metadata?: MetadataPolicy;
  readonly redact?: readonly string[];
  readonly config?: NodeConfig;
  readonly partial?: boolean;
  readonly allowNetwork?: boolean;
  readonly device?: DeviceChoice;
  readonly passing?: readonly string[];
  /** For a check: what items may set. */
  readonly keys?: readonly string[];
  /** Names of an item of a batch. */
  readonly names?: ItemNames;
  /** Nobody listens: the result is sent, at the end. */
  readonly isQuiet?: boolean;
  /** Where a quiet run leaves the id of the node it is at, for the case that the thread is lost. */
  readonly mark?: SharedArrayBuffer;
}

/** Without code: an error that is not the library's own. */
export interface SentError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly stack?: string;
}

/** A result as data that can be sent: values that are no scalars in words. */
export type SentResult = Omit<RenderResult, "error"> & { readonly error?: SentError };

/** Several runs may be in a thread at once; `id` tells them apart. */
export type ToThread = { readonly id: number } & (
  | {
      /** "check" only tells whether setup and graph are good. */
      readonly type: "run" | "check";
      readonly run: ThreadRun;
    }
  | { readonly type: "abort" }
);
export type FromThread = { readonly id: number } & (
  | {
      /** A RunEvent, its errors as SentError and its values in words. */
      readonly type: "event";
      readonly event: RunEvent;
    }
  | {
      readonly type: "end";
      readonly written?: readonly WrittenFile[];
      /** Of a quiet run; of others it follows from the events. */
      readonly result?: SentResult;
      /** Why a run that came to its end has failed after all. */
      readonly failure?: SentError;
    }
  | {
      /** Before anything was written; `isFatal`: the thread is of no use. */
      readonly type: "refused";
      readonly error: SentError;
      readonly isFatal: boolean;
    }
);

/** A node that reports each of a million steps would fill the other thread's queue. */
const PROGRESS_EVERY_MS = 40;

function serve(port: MessagePort, data: ThreadData): void {
  const { encodesHere } = data;
  const cache = createCache({ policy: "bytes", size: data.cacheBytes });
  const diskCache = data.cacheDir === undefined ? undefined : createDiskCache({ folder: data.cacheDir });
  const prepared = once(() => prepare(data.setup));
  const parsed = createReader();
  let lastGraph = "";
  const running = new Map<number, AbortController>();
  const send = (message: FromThread) => port.postMessage(message);

  const run = async (id: number, graph: string, asked: ThreadRun, signal: AbortSignal, isCheck: boolean) => {
    let place: Required<Made>;
    try {
      place = await prepared();
    } catch (error) {
      send({ id, type: "refused", error: sent(error), isFatal: true });
      return;
    }
    if (isCheck) {
      send(checked(id, graph, asked, place));
      return;
    }
    const { json, names, isQuiet = false, mark } = asked;
    const isDue = createThrottle();
    const isItem = names !== undefined;
    const onEvent = (event: RunEvent) => {
      if (mark !== undefined && event.type === "node-start") setMark(mark, event.displayId);
      const isTold = isQuiet ? !isItem && tellsFiles(event) : isDue(event);
      if (isTold) send({ id, type: "event", event: sendable(event) });
    };
    const files = isItem ? new ItemFiles(names, blockingDisk) : undefined;
    try {
      const { set, extraPnginfo } = parseJson(json) as Pick<RenderOptions, "set" | "extraPnginfo">;
      // one by one: spreading these takes longer than a node
      const given: RenderSettings = {
        set,
        extraPnginfo,
        targets: asked.targets,
        outputDir: asked.outputDir,
        inputDir: asked.inputDir,
        classAliases: asked.classAliases,
        metadata: asked.metadata,
        redact: asked.redact,
        config: asked.config,
        partial: asked.partial,
        allowNetwork: asked.allowNetwork,
        device: asked.device,
        passing: asked.passing,
        registry: place.registry,
        host: place.host,
        output: { files, encodesHere },
        cache,
        diskCache,
        signal,
        onEvent,
        hasTransientEvents: true,
        // of items nobody hears the events: a random id costs more than a node
        runId: isItem ? `${names.batch}-${names.index}` : undefined,
      };
      const made = await renderChecked(parsed(graph), given);
      const failure = made.status === "success" ? await commit(files) : undefined;
      const result = isQuiet ? sentResult(made, isItem) : undefined;
      send({ id, type: "end", written: files?.written, result, failure });
    } catch (error) {
      send({ id, type: "refused", error: sent(error), isFatal: false });
    }
  };

  port.on("message", (message: ToThread) => {
    const { id } = message;
    if (message.type === "abort") running.get(id)?.abort();
    else {
      const controller = new AbortController();
      running.set(id, controller);
      const isCheck = message.type === "check";
      lastGraph = message.run.graph ?? lastGraph;
      void run(id, lastGraph, message.run, controller.signal, isCheck).finally(() => running.delete(id));
    }
  });
}

/** Whether an event tells of files, which the owner of a quiet run knows at once: the thread may be lost later. */
const tellsFiles = (event: RunEvent): boolean => event.type === "node-done" && event.ui !== undefined;

/** Of an item of a batch nobody asks for values. */
function sentResult({ error, ...result }: RenderResult, isItem: boolean): SentResult {
  const told = isItem ? { ...result, ui: {}, outputs: {}, nodeMs: {} } : (plainResult(result, Number) as RenderResult);
  return { ...told, error: error && sent(error) };
}

/** A batch runs the same text with each item. */
function createReader(): (graph: string) => string | object {
  let text: string | undefined;
  let known: object = {};
  return (graph) => {
    if (!graph.startsWith("{")) return graph;
    if (graph !== text) known = frozenGraph(parseJson(graph, { what: "Graph" }) as object);
    text = graph;
    return known;
  };
}

/** Why an item's texts cannot be written; undefined where they are. */
async function commit(files: ItemFiles | undefined): Promise<SentError | undefined> {
  try {
    await files?.commit();
    return undefined;
  } catch (error) {
    return sent(error);
  }
}

/** Whether the graph can run with the setup's nodes, before any item of it does. */
function checked(
  id: number,
  graph: string,
  { json, classAliases, ...shared }: ThreadRun,
  { registry, host }: Required<Made>,
): FromThread {
  try {
    const { set } = parseJson(json) as { set?: Record<string, unknown> };
    refuseWrong(parseGraph(readGraph(graph).graph, { classAliases }), { ...shared, registry, host, set });
    return { id, type: "end" };
  } catch (error) {
    return { id, type: "refused", error: sent(error), isFatal: false };
  }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The setup's nodes and host, once for all runs: models are loaded once, and the cache knows the host again. */
async function prepare(setup: string | undefined): Promise<Required<Made>> {
  const made = setup === undefined ? {} : await runSetup(new URL(setup));
  return { registry: made.registry ?? defaultRegistry, host: made.host ?? defaultHost };
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

if (parentPort === null) throw new Error("render/threads/thread.js runs in a worker thread only.");
serve(parentPort, workerData as ThreadData);
