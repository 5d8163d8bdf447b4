import { parentPort, workerData } from "node:worker_threads";
import { printJson } from "../../io/json/lossless.js";
import { inspect } from "./inspect.js";

// In a worker thread: a foreign file costs the service no turn of its event loop, and no memory of its own.
parentPort!.postMessage(printJson({ ok: true, ...inspect(workerData as Uint8Array) }));
