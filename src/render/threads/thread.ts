import { createRequire } from "node:module";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { LatentkitError, type SentError, serializeError } from "../../base/errors.js";
import { memoizeLast } from "../../base/lazy.js";
import type { RunEvent } from "../../graph/events.js";
import { createCache } from "../../graph/memory/cache.js";
import { parseGraph, parseGraphText } from "../../graph/parse.js";
import type { ConnectedHost } from "../../host/checkpoint/host.js";
import type { PlacedRun } from "../../host/checkpoint/runtime/remote/remote-runtime.js";
import type { ModelSettings } from "../../host/checkpoint/settings.js";
import type { FilesByName } from "../../io/files/input-text.js";
import {
  CollectedFiles,
  type CollectedWrite,
  ItemFiles,
  type ItemNames,
  type WrittenFile,
} from "../../io/files/item-files.js";
import { blockingDisk } from "../../io/files/write-file.js";
import { parseJson } from "../../io/json/lossless.js";
import { type Job, parseJob } from "../job.js";
import { plainEvent, plainResult, withSmallPreview } from "../plain.js";
import { refuseWrong } from "../refuse-wrong.js";
import { renderJob } from "../render.js";
import type { RunOutcome } from "../result.js";
import { frozenGraph, readGraph } from "../source.js";
import { type RenderSurroundings, runSetup, surroundingsOf } from "../surroundings.js";
import { setMark } from "./mark.js";

const require = createRequire(import.meta.url);

/** Data of a thread's live objects, which all its runs share; the disk cache's folder is absolute. */
interface ThreadObjects extends Readonly<Pick<Job, "setup" | "cacheDir">> {
  readonly cacheBytes: number;
  /** Models to render with, and the port to the thread that runs their networks. */
  readonly models?: { readonly folders: ModelSettings["folders"]; readonly port: MessagePort };
}

/** Live objects of a thread. */
interface OpenThread {
  readonly surroundings: RenderSurroundings;
  /** Does the work of a run. */
  readonly within: ConnectedHost["within"];
}

/** Opens the objects of a thread once for all of its runs. Rejects with setup.failed and config.invalid. */
async function openThread(data: ThreadObjects): Promise<OpenThread> {
  const { models, setup: url } = data;
  const cache = createCache({ policy: "bytes", size: data.cacheBytes });
  const setup = url === undefined ? {} : await runSetup(url);
  if (models === undefined)
    return { surroundings: surroundingsOf(data, { cache }, setup), within: (_, work) => work() };
  if (setup.host !== undefined) {
    throw new LatentkitError("setup.failed", `Setup module ${url}: expected models or its host, received both.`);
  }
  // loaded where there are models alone, in half the time of `import` in Node 20
  const { connectHost } = require("../../host/checkpoint/host.js") as typeof import("../../host/checkpoint/host.js");
  const { host, within } = connectHost(models.folders, models.port);
  return { surroundings: surroundingsOf(data, { cache, host }, setup), within };
}

// Runs in a worker thread: graphs as render-thread.ts asks for them.

/** Facts that a thread is started with. */
export interface ThreadData extends ThreadObjects {
  /** See `OutputHandling`. */
  readonly isBlocking: boolean;
}

/** One run, as data that can be sent. */
export interface ThreadRun {
  /** A path or JSON text; that of the message before where absent. */
  readonly graph?: string | Uint8Array;
  /** Text of `printJob`; that of the message before where absent. */
  readonly job?: string;
  /** Files of the job; those of the message before where absent, null for none. */
  readonly files?: FilesByName | null;
  /** The item of a batch that is rendered; the job as it is where absent. */
  readonly item?: ThreadItem;
  /** For a check: keys that items may set; anything where absent. */
  readonly keys?: readonly string[];
  /** Without a listener: only the result is sent, at the end. */
  readonly isQuiet?: boolean;
  /** Where a quiet run leaves the id of the node it is at, for the case that the thread is lost. */
  readonly mark?: SharedArrayBuffer;
}

/** Difference between an item of a batch and the job that it shares with all others. */
export interface ThreadItem {
  /** Its `set` as JSON, which keeps every digit. */
  readonly set: string;
  readonly passing: readonly string[];
  readonly names: ItemNames;
  /** Nothing is written: the writes are sent to the owner. */
  readonly isCollected?: boolean;
}

/** A result as data that can be sent: values that are no scalars in words. */
export type SentResult = Omit<RunOutcome, "error"> & { readonly error?: SentError };

interface RunMessage {
  /** "check" only finds out whether the graph can run with the setup's nodes, before any item of it does. */
  readonly type: "run" | "check";
  readonly run: ThreadRun;
}

/** Several runs may be in a thread at once; `id` distinguishes them. */
export type ToThread = { readonly id: number } & (RunMessage | { readonly type: "abort" });
export type FromThread = { readonly type: "loaded" } | ReplyMessage;
type ReplyMessage = { readonly id: number } & (
  | {
      /** A RunEvent, its errors as SentError and its values in words. */
      readonly type: "event";
      readonly event: RunEvent;
    }
  | {
      readonly type: "end";
      readonly written?: readonly WrittenFile[];
      /** Sent for a quiet run; for others it follows from the events. */
      readonly result?: SentResult;
      /** Sent for a run with its output in memory, whose bytes move to the owner. */
      readonly files?: RunOutcome["files"];
      /** Writes of an item that is collected, whose bytes move to the owner. */
      readonly collected?: readonly CollectedWrite[];
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

/** Graph, job and files of the newest message; later ones leave out what is the same. */
interface Sent {
  readonly graph: string | Uint8Array;
  readonly job: string;
  readonly files: FilesByName | undefined;
}

/** A node that reports each of a million steps would fill the other thread's queue. */
const PROGRESS_EVERY_MS = 40;

function serve(port: MessagePort, data: ThreadData): void {
  const { isBlocking } = data;
  // once for all runs: models are loaded once, and the cache recognises the host
  const open = once(() => openThread(data));
  const graphOf = memoizeLast(readGraphText);
  const jobOf = memoizeLast(parseJob);
  const withFiles = (text: string, files: FilesByName | undefined): Job =>
    files === undefined ? jobOf(text) : { ...jobOf(text), files };
  let graph: string | Uint8Array = "";
  let job = "";
  let given: FilesByName | undefined;
  const running = new Map<number, AbortController>();
  const send = (message: FromThread, moved: readonly ArrayBuffer[] = []) => port.postMessage(message, moved);

  const run = async (id: number, message: RunMessage, { graph, job, files: given }: Sent, signal: AbortSignal) => {
    let opened: OpenThread;
    try {
      opened = await open();
    } catch (error) {
      send({ id, type: "refused", error: serializeError(error), isFatal: true });
      return;
    }
    const { surroundings, within } = opened;
    const { item, keys, isQuiet = false, mark } = message.run;
    const isDue = createThrottle();
    const onEvent = (event: RunEvent) => {
      if (mark !== undefined && event.type === "node-start") setMark(mark, event.displayId);
      const isSent = isQuiet ? item === undefined && namesFiles(event) : isDue(event);
      if (isSent) send({ id, type: "event", event: sendable(event) });
    };
    try {
      const shared = withFiles(job, given);
      const collected = item?.isCollected ? new CollectedFiles(item.names, shared.outputDir ?? "") : undefined;
      const own = item && collected === undefined ? new ItemFiles(item.names, blockingDisk) : undefined;
      const files = collected ?? own;
      if (message.type === "check") {
        refuseWrong(
          parseGraph(readGraph(graph, { ...shared, registry: surroundings.registry }).graph, shared),
          shared,
          surroundings,
          keys,
        );
        send({ id, type: "end" });
        return;
      }
      const itemJob = item && { ...shared, set: parseJson(item.set) as Job["set"], passing: item.passing };
      const around = {
        ...surroundings,
        outputHandling: { files },
        isBlocking,
        signal,
        onEvent,
        hasTransientEvents: true,
      };
      // nobody reads the events of items: a random id costs more than a node
      const runId = item && `${item.names.batch}-${item.names.position}`;
      // items of this process's batch in their order; those of a store's are runs of a service, which take turns
      const rank = item === undefined || item.isCollected ? 0 : item.names.position;
      const place = { run: String(id), rank };
      const onLoad: PlacedRun["onLoad"] = ({ label, state, memory }) =>
        onEvent({ type: "network", network: label, state, ...(memory && { memory }), at: Date.now() });
      const rendered = await within({ place, onLoad }, () =>
        renderJob(graphOf(graph), itemJob ?? shared, around, runId),
      );
      const failure = rendered.status === "success" ? await commit(own) : undefined;
      const result = isQuiet ? sentResult(rendered, item !== undefined) : undefined;
      const inMemory = rendered.files.flatMap((file) => (file.bytes === undefined ? [] : [file.bytes.buffer]));
      const bytes = new Set([...inMemory, ...(collected?.writes ?? []).map(({ bytes }) => bytes.buffer)]);
      const moved = inMemory.length === 0 ? undefined : rendered.files;
      const outcome = { written: own?.written, result, files: moved, collected: collected?.writes, failure };
      send({ id, type: "end", ...outcome }, [...bytes] as ArrayBuffer[]);
    } catch (error) {
      send({ id, type: "refused", error: serializeError(error), isFatal: false });
    }
  };

  port.on("message", (message: ToThread) => {
    const { id } = message;
    if (message.type === "abort") running.get(id)?.abort();
    else {
      const controller = new AbortController();
      running.set(id, controller);
      graph = message.run.graph ?? graph;
      job = message.run.job ?? job;
      given = message.run.files === null ? undefined : (message.run.files ?? given);
      void run(id, message, { graph, job, files: given }, controller.signal).finally(() => running.delete(id));
    }
  });
}

/** Whether an event names files, which the owner of a quiet run knows at once: the thread may be lost later. */
const namesFiles = (event: RunEvent): boolean => event.type === "node-done" && event.ui !== undefined;

/** Values of an item of a batch stay here: nobody reads them. */
function sentResult({ error, ...result }: RunOutcome, isItem: boolean): SentResult {
  const values = isItem
    ? { ...result, ui: {}, outputs: {}, nodeMs: {} }
    : (plainResult({ ...result, files: result.files.map(({ bytes, ...file }) => file) }, Number) as RunOutcome);
  return { ...values, error: error && serializeError(error) };
}

const readGraphText = (graph: string | Uint8Array): string | object =>
  typeof graph === "string" && graph.startsWith("{") ? frozenGraph(parseGraphText(graph)) : graph;

/** Why an item's texts cannot be written; undefined where they are. */
async function commit(files: ItemFiles | undefined): Promise<SentError | undefined> {
  try {
    await files?.commit();
    return undefined;
  } catch (error) {
    return serializeError(error);
  }
}

function once<T>(create: () => Promise<T>): () => Promise<T> {
  let created: Promise<T> | undefined;
  return () => {
    created ??= create();
    return created;
  };
}

function createThrottle(): (event: RunEvent) => boolean {
  let next = 0;
  return (event) => {
    if (event.type !== "progress" || event.value >= event.max || event.preview !== undefined) return true;
    const now = performance.now();
    if (now < next) return false;
    next = now + PROGRESS_EVERY_MS;
    return true;
  };
}

function sendable(event: RunEvent): RunEvent {
  if (event.type === "progress") return withSmallPreview(event);
  const copy = plainEvent(event, Number) as RunEvent;
  return event.type === "node-error" ? ({ ...copy, error: serializeError(event.error) } as RunEvent) : copy;
}

if (parentPort === null) throw new Error("render/threads/thread.js runs in a worker thread only.");
serve(parentPort, workerData as ThreadData);
