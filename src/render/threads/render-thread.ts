import type { ResourceLimits } from "node:worker_threads";
import { onAbort } from "../../base/abort.js";
import { LatentkitError } from "../../base/errors.js";
import { deserializeError, type SentError } from "../../base/sent-error.js";
import type { RunEvent } from "../../graph/events.js";
import type { CollectedWrite, WrittenFile } from "../../io/files/item-files.js";
import { createFold, type RunOutcome } from "../result.js";
import { type LoadedWorker, startWorker } from "./loaded-worker.js";
import {
  createMark,
  type FromThread,
  readMark,
  type SentResult,
  setMark,
  type ThreadData,
  type ThreadRun,
  type ToThread,
} from "./messages.js";
import type { ModelThread } from "./model-thread.js";

export interface ThreadSettings {
  readonly data: ThreadData;
  /** Models of the thread; none if absent. */
  readonly models?: ModelThread;
  readonly resourceLimits?: ResourceLimits;
  /** From an abort to the end of a thread whose node does not listen. */
  readonly graceMs: number;
}

/** A result, with the files that the run's own names led to. */
export interface ThreadResult extends RunOutcome {
  readonly written?: readonly WrittenFile[];
  /** Writes of an item that is collected. */
  readonly collected?: readonly CollectedWrite[];
}

const LONGEST_REASON = 300;
const PROGRAM = new URL("./thread.js", import.meta.url);

export interface RunListener {
  /** Receives every event; results in it are described in words, progress comes at most 25 times a second. */
  readonly onEvent?: (event: RunEvent) => void;
  readonly signal?: AbortSignal;
}

/** A run in progress, as its thread's owner sees it. */
interface Running {
  readonly fold: ReturnType<typeof createFold>;
  readonly onEvent: RunListener["onEvent"];
  readonly resolve: (result: ThreadResult) => void;
  readonly reject: (error: unknown) => void;
  readonly mark: SharedArrayBuffer;
  isAborted: boolean;
  grace: NodeJS.Timeout | undefined;
}

/** One worker thread that renders graphs. It keeps the process alive only while it does. */
export class RenderThread {
  readonly #worker: LoadedWorker;
  readonly #running = new Map<number, Running>();
  /** Marks of runs that are over. */
  readonly #marks: SharedArrayBuffer[] = [];
  /** Graph, job and files that were sent last: those of a batch are sent once. */
  #graph: string | Uint8Array | undefined;
  #job: string | undefined;
  #files: ThreadRun["files"];
  #nextId = 0;
  #crash: Error | undefined;
  #isOver = false;
  /** Resolves when the thread is gone. */
  readonly ended: Promise<void>;
  readonly #settings: ThreadSettings;

  constructor(settings: ThreadSettings) {
    this.#settings = settings;
    const { data, models, resourceLimits } = settings;
    const retire = () => this.#retire();
    const port = models?.connect(retire);
    const opened = port && models && { port, folders: models.settings.folders };
    const transferList = port === undefined ? [] : [port];
    const options = { workerData: { ...data, models: opened }, transferList, resourceLimits };
    this.#worker = startWorker("A rendering thread", PROGRAM, options);
    this.#worker.on("message", (message: FromThread) => this.#receive(message));
    this.#worker.on("error", (error) => {
      this.#crash = error;
    });
    this.ended = new Promise((resolve) => {
      this.#worker.on("exit", (code) => {
        models?.leave(retire);
        this.#exited(code);
        resolve();
      });
    });
    this.#worker.unref();
  }

  /** False once the thread has ended or is useless. */
  get isAlive(): boolean {
    return !this.#isOver;
  }

  /** Number of runs in progress. */
  get load(): number {
    return this.#running.size;
  }

  /**
   * Runs one graph. A node that fails, a thread that is lost and an abort show in the result's status; rejects if
   * the graph or the setup is wrong, before anything is written. "check" does no more than that. `outputDir`: absolute.
   */
  run(run: ThreadRun, outputDir: string, { onEvent, signal }: RunListener): Promise<ThreadResult> {
    const id = this.#nextId++;
    const mark = this.#marks.pop() ?? createMark();
    setMark(mark, "");
    const graph = run.graph === this.#graph ? undefined : run.graph;
    const job = run.job === this.#job ? undefined : run.job;
    const files = run.files === this.#files ? undefined : (run.files ?? null);
    // before the run counts: files that cannot be sent throw here
    this.#send({ id, ...run, graph, job, files, isQuiet: onEvent === undefined, mark });
    const done = new Promise<ThreadResult>((resolve, reject) => {
      const fold = createFold(outputDir);
      this.#running.set(id, { fold, onEvent, resolve, reject, mark, isAborted: false, grace: undefined });
    });
    this.#worker.ref();
    this.#graph = run.graph;
    this.#job = run.job;
    this.#files = run.files;
    const leave = onAbort(signal, () => this.#abort(id));
    return done.finally(() => leave());
  }

  /** Asks all runs to stop; a thread that does not listen is ended. */
  abortAll(): void {
    for (const id of this.#running.keys()) this.#abort(id);
  }

  /** Ends the thread at once. */
  end(): void {
    this.#isOver = true;
    void this.#worker.terminate();
  }

  /** Takes no further run, and ends the thread after the last. */
  #retire(): void {
    this.#isOver = true;
    if (this.load === 0) this.end();
  }

  #abort(id: number): void {
    const running = this.#running.get(id);
    if (running === undefined || running.isAborted) return;
    running.isAborted = true;
    this.#send({ id, type: "abort" });
    running.grace = setTimeout(() => this.end(), this.#settings.graceMs);
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromThread): void {
    if (message.type === "loaded") return;
    const { id } = message;
    const running = this.#running.get(id);
    if (running === undefined) return;
    if (message.type === "event") this.#emit(id, running, message.event);
    else if (message.type === "end") {
      const { written, failure, result, files, collected } = message;
      const rendered = result === undefined ? running.fold.end() : received(result);
      const failed = failure && { status: "failed" as const, error: deserializeError(failure) as LatentkitError };
      this.#settle(id, () => running.resolve({ ...rendered, ...(files && { files }), ...failed, written, collected }));
    } else {
      if (message.isFatal) this.end();
      this.#settle(id, () => running.reject(deserializeError(message.error)));
    }
  }

  #emit(id: number, running: Running, received: RunEvent): void {
    const event =
      received.type === "node-error" ? { ...received, error: deserializeError(received.error as SentError) } : received;
    running.fold.add(event as RunEvent);
    try {
      running.onEvent?.(event as RunEvent);
    } catch (error) {
      // a listener that throws must not take the process down from inside an event handler
      this.end();
      this.#settle(id, () => running.reject(error));
    }
  }

  #exited(code: number): void {
    this.#isOver = true;
    for (const [id, running] of this.#running) {
      const result = running.fold.end();
      const cause: Partial<RunOutcome> = running.isAborted
        ? { status: "interrupted", error: undefined }
        : { status: "failed", error: lost(readMark(running.mark), this.#crash, code) };
      this.#settle(id, () => running.resolve({ ...result, ...cause }));
    }
  }

  #settle(id: number, how: () => void): void {
    const running = this.#running.get(id);
    if (running === undefined) return;
    clearTimeout(running.grace);
    this.#running.delete(id);
    this.#marks.push(running.mark);
    if (this.#running.size === 0 && this.#isOver) this.end();
    else if (this.#running.size === 0) this.#worker.unref();
    how();
  }
}

function lost(nodeId: string | undefined, crash: Error | undefined, code: number): LatentkitError {
  const where = nodeId === undefined ? "" : `Node ${nodeId}: `;
  const reason = String(crash?.message ?? crash)
    .split("\n")[0]!
    .slice(0, LONGEST_REASON);
  const why = crash === undefined ? `process.exit(${code}) was called` : `uncaught error: ${reason}`;
  return new LatentkitError(
    "thread.lost",
    `${where}the rendering thread ended (${why}).`,
    { nodeId },
    { cause: crash },
  );
}

const received = ({ error, ...result }: SentResult): RunOutcome => ({
  ...result,
  error: error && (deserializeError(error) as LatentkitError),
});
