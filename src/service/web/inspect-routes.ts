import { HookError } from "../hooks/hook-error.js";
import { arrivalLimits, clientSignal, readBodyBytes } from "../hooks/http/body.js";
import { type Call, type Route, requireRunId } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes, sendJson } from "../hooks/http/responses.js";
import { WorkThreads } from "../hooks/work-threads.js";
import type { Inspected, Inspecting } from "./inspect-thread.js";
import { type PageSchemas, pageRoute } from "./page-route.js";
import { messageTexts } from "./run-facts.js";

/** Largest file that is inspected. */
const MOST_BYTES = 32 * 2 ** 20;
/** Most files and graphs that are read or inspected at once. */
const MOST_INSPECTIONS = 4;
const INSPECTION_MS = 60_000;
const THREAD_MIB = 512;

// A dropped file is inspected in a separate thread and never stored; numbers travel as texts, which keep long
// seeds.
// A dropped graph runs only if comfy_api admits graphs: one key opens both.
/** Graphs as the page shows, fills and runs them. */
export function inspectRoutes({ agent, clock, config, runs }: HookContext, { any }: PageSchemas): Route[] {
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
  const respond = async ({ req, res }: Call, read: () => Promise<Buffer>, workOn: (bytes: Buffer) => Inspecting) => {
    if (active >= MOST_INSPECTIONS) {
      throw new HookError("rate_limited", "too many files are inspected at once, try again later", {
        retryAfterSeconds: 1,
      });
    }
    active += 1;
    try {
      const bytes = await read();
      // 32 MiB that were copied would hold up the event loop
      const moved = bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer as ArrayBuffer] : [];
      const result = await threads.run(async () => ({ value: workOn(bytes), moved }), clientSignal(res));
      if ("refusal" in result) throw new HookError("invalid_request", result.refusal);
      sendBytes(req, res, { status: 200, bytes: Buffer.from(result.json) });
    } finally {
      active -= 1;
    }
  };
  const bodyOf =
    ({ req, res }: Call, maxBytes: number) =>
    () =>
      readBodyBytes(req, res, { maxBytes, ...arrival, takesAnyType: true });
  const inspect = (call: Call) =>
    respond(call, bodyOf(call, MOST_BYTES), (bytes) => ({ task: "inspect", bytes, served: served(), runsAny }));
  const fill = (call: Call) =>
    respond(call, bodyOf(call, config.limits.comfy_body_bytes), (bytes) => ({ task: "fill", bytes }));
  const form = async (call: Call) => {
    const { message, graph } = await runs.get(requireRunId(call));
    if (graph === null) {
      const body = { ok: true, parameters: null, values: messageTexts(message), text: null };
      return sendJson(call.req, call.res, { status: 200, body });
    }
    const own = graph.name === null ? null : message;
    await respond(
      call,
      async () => Buffer.from(graph.text),
      (bytes) => ({ task: "form", bytes, message: own, runsAny }),
    );
  };
  const responses = { 200: { json: any } };
  const routes = [
    pageRoute("inspect", "POST", {
      summary: "Show graph, receipt and texts of the picture or graph that is the body",
      body: { schema: any, type: "application/octet-stream" },
      responses,
      handle: inspect,
    }),
    pageRoute("form", "GET", { summary: "Get the form fields and values of a run", responses, handle: form }),
  ];
  if (!runsAny) return routes;
  const summary = "Build a Comfy API job body from a graph and values";
  return [...routes, pageRoute("fill", "POST", { summary, body: { schema: any }, responses, handle: fill })];
}
