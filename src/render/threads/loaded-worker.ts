import { fileURLToPath } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { LatentkitError } from "../../base/errors.js";

/** Longest wait of an ending process for a thread that loads its program, which takes a third of a second. */
const MOST_EXIT_WAIT_MS = 10_000;

/** Flags of the loading threads; each is 1 once its thread has loaded. */
const loading = new Set<Int32Array>();
function waitForAll(): void {
  for (const flag of loading) Atomics.wait(flag, 0, 0, MOST_EXIT_WAIT_MS);
}

// V8 aborts the whole process if a thread is stopped while `require` links modules (Module::IsGraphAsync, Node 20.20).
/** A worker thread that is stopped only once its program is loaded. Its first message is `{ type: "loaded" }`. */
export class LoadedWorker extends Worker {
  readonly #loaded: Promise<void>;

  constructor(
    program: URL,
    { workerData, ...more }: Pick<WorkerOptions, "workerData" | "resourceLimits" | "transferList">,
  ) {
    const flag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    // --input-type is that of a program on the command line; a thread's program has its own type
    const execArgv = process.execArgv.some((name) => name.startsWith("--input-type")) ? [] : undefined;
    super(starter(program), { eval: true, workerData: { ...workerData, flag }, ...more, execArgv });
    // the end of a process stops its threads as well
    if (loading.size === 0) process.on("exit", waitForAll);
    loading.add(flag);
    this.#loaded = new Promise((resolve) => {
      const end = () => {
        if (loading.delete(flag) && loading.size === 0) process.off("exit", waitForAll);
        resolve();
      };
      this.once("message", end);
      this.once("exit", end);
    });
  }

  override async terminate(): Promise<number> {
    // an unreferenced thread would end with the process here, unawaited
    this.ref();
    await this.#loaded;
    return super.terminate();
  }
}

/** Starts a worker thread; `subject` is its name in a sentence. Throws thread.lost. */
export function startWorker(
  subject: string,
  program: URL,
  options: ConstructorParameters<typeof LoadedWorker>[1],
): LoadedWorker {
  try {
    return new LoadedWorker(program, options);
  } catch (cause) {
    const message = `${subject} cannot be started (${(cause as Error).message}).`;
    throw new LatentkitError("thread.lost", message, {}, { cause });
  }
}

/** `require` takes half the time of `import` in Node 20. */
const starter = (program: URL): string => `
  const { parentPort, workerData } = require("node:worker_threads");
  try {
    require(${JSON.stringify(fileURLToPath(program))});
  } finally {
    Atomics.store(workerData.flag, 0, 1);
    Atomics.notify(workerData.flag, 0);
    parentPort.postMessage({ type: "loaded" });
  }`;
