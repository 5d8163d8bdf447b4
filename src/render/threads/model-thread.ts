import { createRequire } from "node:module";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type {
  FromRuntimeThread,
  RuntimeThreadData,
  ToRuntimeThread,
} from "../../host/checkpoint/runtime/remote/thread.js";
import type { RuntimeOptions } from "../../host/checkpoint/session/runtime.js";
import type { ModelSettings } from "../../host/checkpoint/settings.js";
import type { Host } from "../../host/host.js";
import { type LoadedWorker, startWorker } from "./loaded-worker.js";

const require = createRequire(import.meta.url);
const PROGRAM = new URL("../../host/checkpoint/runtime/remote/thread.js", import.meta.url);

// decisions: Threads share one runtime and take turns
/**
 * The thread whose child process runs the networks of all threads that render. It starts with the first of them, and again
 * with the next one if it has ended. It does not keep the process alive.
 */
export class ModelThread {
  #worker: LoadedWorker | undefined;
  #ended: Promise<void> = Promise.resolve();
  /** Callbacks of the threads that render. */
  readonly #lost = new Set<() => void>();

  /** Lists and checks the models in the thread that has this object. */
  readonly listing: Host;
  readonly #reports: Pick<RuntimeOptions, "onLoad" | "onDevice">;

  /** Throws usage.invalid for wrong settings, and config.invalid for folders that do not exist. */
  constructor(
    readonly settings: ModelSettings,
    reports: Pick<RuntimeOptions, "onLoad" | "onDevice"> = {},
  ) {
    this.#reports = reports;
    // read only if there are models
    const { createListingHost } =
      require("../../host/checkpoint/listing-host.js") as typeof import("../../host/checkpoint/listing-host.js");
    this.listing = createListingHost(settings);
  }

  /** Starts the process of the networks before a call needs it. */
  start(): void {
    send(this.#worker ?? this.#startWorker(), { type: "start" });
  }

  /** Port for one more thread that renders; `lost` is called when its other end is gone. */
  connect(lost: () => void): MessagePort {
    const worker = this.#worker ?? this.#startWorker();
    this.#lost.add(lost);
    const { port1, port2 } = new MessageChannel();
    send(worker, { type: "connect", port: port1 }, [port1]);
    return port2;
  }

  /** Forgets a thread that has ended. */
  leave(lost: () => void): void {
    this.#lost.delete(lost);
  }

  /** Ends the process of the networks, and the thread; resolves when both are gone. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    // a program with nothing else to do waits for the end too
    worker.ref();
    const closed = new Promise<void>((resolve) => {
      worker.on("message", ({ type }: FromRuntimeThread) => type === "closed" && resolve());
    });
    send(worker, { type: "close" });
    await Promise.race([closed, this.#ended]);
    await worker.terminate();
  }

  #startWorker(): LoadedWorker {
    const { device, threads, memory, plan } = this.settings;
    const workerData: RuntimeThreadData = { device, threads, memory, plan };
    const worker = startWorker("The thread of ONNX Runtime", PROGRAM, { workerData });
    worker.on("message", (message: FromRuntimeThread) => {
      if (message.type === "network") this.#reports.onLoad?.(message.label, message.state, message.memory);
      if (message.type === "device") this.#reports.onDevice?.(message.facts);
    });
    // callers that wait for a call learn of it by their port
    worker.on("error", () => {});
    this.#ended = new Promise((resolve) => {
      worker.once("exit", () => {
        this.#worker = undefined;
        for (const lost of this.#lost) lost();
        resolve();
      });
    });
    worker.unref();
    this.#worker = worker;
    return worker;
  }
}

const send = (worker: LoadedWorker, message: ToRuntimeThread, moved: readonly MessagePort[] = []): void =>
  worker.postMessage(message, moved);
