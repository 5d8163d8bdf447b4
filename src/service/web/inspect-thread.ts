import { LatentkitError } from "../../base/errors.js";
import { printJson } from "../../io/json/lossless.js";
import { serveWork } from "../hooks/work-threads.js";
import { filledJob, formOfRun, inspect, type ServedGraph } from "./inspect.js";

/** Work of a thread on the bytes of a request. */
export type Inspecting = { readonly bytes: Uint8Array } & (
  | { readonly task: "inspect"; readonly served: readonly ServedGraph[]; readonly runsAny: boolean }
  | { readonly task: "form"; readonly message: string | null; readonly runsAny: boolean }
  | { readonly task: "fill" }
);

/** JSON of the response, or the sentence that refuses the request. */
export type Inspected = { readonly json: string } | { readonly refusal: string };

// In a worker thread: a foreign file takes neither time of the service's event loop nor memory of its heap.
serveWork((data: Inspecting) => ({ value: answer(data) }));

function answer(data: Inspecting): Inspected {
  if (data.task === "inspect") {
    return { json: printJson({ ok: true, ...inspect(data.bytes, data.served, data.runsAny) }) };
  }
  try {
    if (data.task === "form") {
      return { json: printJson({ ok: true, ...formOfRun(data.bytes, data.message, data.runsAny) }) };
    }
    return { json: filledJob(data.bytes) };
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    return { refusal: error.message };
  }
}
