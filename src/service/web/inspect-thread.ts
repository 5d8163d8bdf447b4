import { parentPort, workerData } from "node:worker_threads";
import { printJson } from "../../io/json/lossless.js";
import { inspect, type ServedGraph } from "./inspect.js";

// In a worker thread: a foreign file costs the service no turn of its event loop, and no memory of its own.
const { bytes, served } = workerData as { bytes: Uint8Array; served: readonly ServedGraph[] };
parentPort!.postMessage(printJson({ ok: true, ...inspect(bytes, served) }));
