import { createRequire } from "node:module";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { LatentkitError } from "../../base/errors.js";
import { memoizeLast } from "../../base/lazy.js";
import { type SentError, serializeError } from "../../base/sent-error.js";
import type { RunEvent } from "../../graph/events.js";
import type { Job } from "../../graph/job.js";
import { createCache } from "../../graph/memory/cache.js";
import { parseGraph, parseGraphText } from "../../graph/parse.js";
import type { Surroundings } from "../../graph/surroundings.js";
import { withoutUnknown } from "../../graph/topology.js";
import type { ConnectedHost } from "../../host/checkpoint/host.js";
import type { PlacedRun } from "../../host/checkpoint/runtime/remote/remote-runtime.js";
import { CollectedFiles, ItemFiles } from "../../io/files/item-files.js";
import { blockingDisk } from "../../io/files/write-file.js";
import { parseJson } from "../../io/json/lossless.js";
import { parseJob } from "../job.js";
import { plainEvent, plainResult, withSmallPreview } from "../plain.js";
import { refuseWrong } from "../refuse-wrong.js";
import { renderJob } from "../render.js";
import type { RunOutcome } from "../result.js";
import { frozenGraph, readGraph } from "../source.js";
import { openSurroundings, runSetup, surroundingsOf } from "../surroundings.js";
import {
  type FromThread,
  type SentResult,
  setMark,
  type ThreadData,
  type ThreadRun,
  type ToThread,
} from "./messages.js";

// Runs in a worker thread: graphs as render-thread.ts asks for them.

const require = createRequire(import.meta.url);

/** Live objects of a thread. */
interface OpenThread {
  readonly surroundings: Surroundings;
  /** Does the work of a run. */
  readonly within: ConnectedHost["within"];
}

/** Opens the objects of a thread, which all its runs share. Rejects with setup.failed and config.invalid. */
async function openThread({ models, cacheDir, cacheBytes, setup: address }: ThreadData): Promise<OpenThread> {
  const cache = createCache({ policy: "bytes", size: cacheBytes });
  const setup = address === undefined ? undefined : new URL(address);
  if (models === undefined) {
    return { surroundings: await openSurroundings({ setup, cacheDir }, { cache }), within: (_, work) => work() };
  }
  const { registry, host: own } = setup === undefined ? {} : await runSetup(setup);
  if (own !== undefined) {
    throw new LatentkitError("setup.failed", `Setup module ${setup}: expected models or its host, received both.`);
  }
  // loaded only if there are models, in half the time of `import` in Node 20
  const { connectHost } = require("../../host/checkpoint/host.js") as typeof import("../../host/checkpoint/host.js");
  const { host, within } = connectHost(models.folders, models.port);
  return { surroundings: surroundingsOf({ cacheDir }, { cache, host, registry }), within };
}

/** A node that reports each of a million steps would fill the other thread's queue. */
const PROGRESS_EVERY_MS = 40;

function serve(port: MessagePort, data: ThreadData): void {
  const { isBlocking } = data;
  let opened: Promise<OpenThread> | undefined;
  const graphOf = memoizeLast(readGraphText);
  const jobOf = memoizeLast(parseJob);
  // of the newest message; later ones omit what has not changed
  let graph: string | Uint8Array = "";
  let jobText = "";
  let files: Job["files"];
  const running = new Map<number, AbortController>();
  const send = (message: FromThread, moved: readonly ArrayBuffer[] = []) => port.postMessage(message, moved);

  const run = async (id: number, { type, item, keys, isQuiet = false, mark }: ThreadRun, signal: AbortSignal) => {
    const [ownGraph, ownText, ownFiles] = [graph, jobText, files];
    // once for all runs: models are loaded once, and the cache recognises the host
    opened ??= openThread(data);
    let thread: OpenThread;
    try {
      thread = await opened;
    } catch (error) {
      send({ id, type: "refused", error: serializeError(error), isFatal: true });
      return;
    }
    const { surroundings, within } = thread;
    const isDue = createThrottle();
    const onEvent = (event: RunEvent) => {
      if (mark !== undefined && event.type === "node-start") setMark(mark, event.displayId);
      const isSent = isQuiet ? item === undefined && namesFiles(event) : isDue(event);
      if (isSent) send({ id, type: "event", event: sendable(event) });
    };
    try {
      const parsed = jobOf(ownText);
      const job = ownFiles === undefined ? parsed : { ...parsed, files: ownFiles };
      if (type === "check") {
        const { graph } = readGraph(ownGraph, { ...job, registry: surroundings.registry });
        const own = withoutUnknown(parseGraph(graph, job), surroundings.registry, job.targets);
        refuseWrong(own, job, surroundings, keys);
        send({ id, type: "end" });
        return;
      }
      const collected = item?.isCollected ? new CollectedFiles(item.names, job.outputDir ?? "") : undefined;
      const own = item && collected === undefined ? new ItemFiles(item.names, blockingDisk) : undefined;
      const ofRun = {
        ...surroundings,
        outputHandling: { files: collected ?? own },
        isBlocking,
        signal,
        onEvent,
        hasTransientEvents: true,
      };
      // items of this process's batch in their order; those of a store's are runs of a service, which take turns
      const rank = item === undefined || item.isCollected ? 0 : item.names.position;
      const place = { run: String(id), rank };
      const onLoad: PlacedRun["onLoad"] = ({ label, state, memory }) =>
        onEvent({ type: "network", network: label, state, ...(memory && { memory }), at: Date.now() });
      const rendered = await within({ place, onLoad }, () => renderJob(graphOf(ownGraph), itemJob(job, item), ofRun));
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
    if (message.type === "abort") return running.get(id)?.abort();
    const controller = new AbortController();
    running.set(id, controller);
    graph = message.graph ?? graph;
    jobText = message.job ?? jobText;
    files = message.files === null ? undefined : (message.files ?? files);
    void run(id, message, controller.signal).finally(() => running.delete(id));
  });
}

/** The job of an item. */
function itemJob(job: Job, item: ThreadRun["item"]): Job {
  if (item === undefined) return job;
  const { values, passing, names } = item;
  const set = { ...job.set, ...(parseJson(values) as Job["set"]) };
  // a random id costs more than a node
  return { ...job, set, passing, runId: `${names.batch}-${names.position}` };
}

/** Whether an event names files, which the owner of a quiet run knows at once: the thread may be lost later. */
const namesFiles = (event: RunEvent): boolean => event.type === "node-done" && event.ui !== undefined;

/** The values of an item of a batch are not sent: they are not read. */
function sentResult({ error, ...result }: RunOutcome, isItem: boolean): SentResult {
  const values = isItem
    ? { ...result, ui: {}, outputs: {}, nodeMs: {} }
    : (plainResult({ ...result, files: result.files.map(({ bytes, ...file }) => file) }, Number) as RunOutcome);
  return { ...values, error: error && serializeError(error) };
}

const readGraphText = (graph: string | Uint8Array): string | object =>
  typeof graph === "string" && graph.startsWith("{") ? frozenGraph(parseGraphText(graph)) : graph;

/** Why an item's texts cannot be written; undefined if they are. */
async function commit(files: ItemFiles | undefined): Promise<SentError | undefined> {
  try {
    await files?.commit();
    return undefined;
  } catch (error) {
    return serializeError(error);
  }
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
