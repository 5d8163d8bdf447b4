import { Worker } from "node:worker_threads";
import type { Clock } from "../hooks/clock.js";
import { HookError } from "../hooks/hook-error.js";
import { arrivalLimits } from "../hooks/http/arrival.js";
import { readBodyBytes } from "../hooks/http/body.js";
import type { Call, Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes } from "../hooks/http/responses.js";
import type { Inspected, Inspecting } from "./inspect-thread.js";

/** Largest file that is inspected. */
const MOST_BYTES = 32 * 2 ** 20;
/** Most files and graphs that are read or inspected at once. */
const MOST_INSPECTIONS = 4;
const INSPECTION_MS = 15_000;
const THREAD_MIB = 512;

// decisions 285, 299
/**
 * `POST /api/page/inspect`: graph, receipt and texts of the picture or graph that is the body. Where any graph may be run,
 * `POST /api/page/fill`: the body of a job of the Comfy API for a graph and its values.
 */
export function inspectRoutes({ agent, clock, config }: HookContext): Route[] {
  const { comfy_api: runsAny } = config.web;
  const served = () => (agent.graphs?.names ?? []).map((name) => ({ name, text: agent.graphs!.find(name)!.text }));
  const arrival = arrivalLimits(config.limits, clock);
  let active = 0;
  const respond = async ({ req, res }: Call, maxBytes: number, toDo: () => Inspecting) => {
    if (active >= MOST_INSPECTIONS) {
      throw new HookError("rate_limited", "too many files are inspected at once, try again later", {
        retryAfterSeconds: 1,
      });
    }
    active += 1;
    try {
      const bytes = await readBodyBytes(req, res, { maxBytes, ...arrival, takesAnyType: true });
      const json = await inThread({ bytes, ...toDo() }, clock);
      sendBytes(req, res, { status: 200, bytes: Buffer.from(json) });
    } finally {
      active -= 1;
    }
  };
  const inspect = (call: Call) => respond(call, MOST_BYTES, () => ({ task: "inspect", served: served(), runsAny }));
  const fill = (call: Call) => respond(call, config.limits.comfy_body_bytes, () => ({ task: "fill" }));
  const routes: Route[] = [
    { name: "page_inspect", paths: ["/api/page/inspect"], access: "token", handlers: { POST: inspect } },
    { name: "page_fill", paths: ["/api/page/fill"], access: "token", handlers: { POST: fill } },
  ];
  return runsAny ? routes : routes.slice(0, 1);
}

/** Returns the thread's JSON. Fails with invalid_request where it refuses, and for a file that takes too long or too much memory. */
function inThread(workerData: Inspecting & { bytes: Uint8Array }, clock: Clock): Promise<string> {
  const thread = new Worker(new URL("./inspect-thread.js", import.meta.url), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MIB },
  });
  return new Promise<string>((resolve, reject) => {
    const refuse = (cause?: Error) =>
      reject(new HookError("invalid_request", "the file is too complex to be inspected", { cause }));
    const timer = clock.setTimer(INSPECTION_MS, () => refuse());
    thread.once("message", (result: Inspected) => {
      if ("json" in result) resolve(result.json);
      else reject(new HookError("invalid_request", result.refusal));
    });
    thread.once("error", refuse);
    thread.once("exit", () => {
      timer.cancel();
      refuse();
    });
  }).finally(() => thread.terminate());
}
