import { HookError } from "../hooks/hook-error.js";
import { arrivalLimits } from "../hooks/http/arrival.js";
import { clientSignal, readBodyBytes } from "../hooks/http/body.js";
import type { Call, Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes } from "../hooks/http/responses.js";
import { WorkThreads } from "../hooks/work-threads.js";
import type { Inspected, Inspecting } from "./inspect-thread.js";

/** Largest file that is inspected. */
const MOST_BYTES = 32 * 2 ** 20;
/** Most files and graphs that are read or inspected at once. */
const MOST_INSPECTIONS = 4;
const INSPECTION_MS = 60_000;
const THREAD_MIB = 512;

// decisions 285, 299
/**
 * `POST /api/page/inspect`: graph, receipt and texts of the picture or graph that is the body. Where any graph may be run,
 * `POST /api/page/fill`: the body of a job of the Comfy API for a graph and its values.
 */
export function inspectRoutes({ agent, clock, config }: HookContext): Route[] {
  const runsAny = config.web.comfy_api !== "none";
  const served = () => (agent.graphs?.names ?? []).map((name) => ({ name, text: agent.graphs!.find(name)!.text }));
  const arrival = arrivalLimits(config.limits, clock);
  const threads = new WorkThreads<Inspecting, Inspected>({
    program: new URL("./inspect-thread.js", import.meta.url),
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MIB },
    mostThreads: MOST_INSPECTIONS,
    mostWaiting: MOST_INSPECTIONS,
    mostMs: INSPECTION_MS,
    refusal: "the file is too complex to be inspected",
    clock,
  });
  let active = 0;
  const respond = async ({ req, res }: Call, maxBytes: number, workOn: (bytes: Buffer) => Inspecting) => {
    if (active >= MOST_INSPECTIONS) {
      throw new HookError("rate_limited", "too many files are inspected at once, try again later", {
        retryAfterSeconds: 1,
      });
    }
    active += 1;
    try {
      const bytes = await readBodyBytes(req, res, { maxBytes, ...arrival, takesAnyType: true });
      // 32 MiB that were copied would hold up the event loop
      const moved = bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer as ArrayBuffer] : [];
      const result = await threads.run(async () => ({ value: workOn(bytes), moved }), clientSignal(res));
      if ("refusal" in result) throw new HookError("invalid_request", result.refusal);
      sendBytes(req, res, { status: 200, bytes: Buffer.from(result.json) });
    } finally {
      active -= 1;
    }
  };
  const inspect = (call: Call) =>
    respond(call, MOST_BYTES, (bytes) => ({ task: "inspect", bytes, served: served(), runsAny }));
  const fill = (call: Call) => respond(call, config.limits.comfy_body_bytes, (bytes) => ({ task: "fill", bytes }));
  const routes: Route[] = [
    { name: "page_inspect", paths: ["/api/page/inspect"], access: "token", handlers: { POST: inspect } },
    { name: "page_fill", paths: ["/api/page/fill"], access: "token", handlers: { POST: fill } },
  ];
  return runsAny ? routes : routes.slice(0, 1);
}
