import type { z } from "zod";
import type { Handler, Route } from "../call.js";
import type { HookContext } from "../context.js";
import type { ResponseSchemas } from "../response-schemas.js";
import { sendJson } from "../responses.js";

/** `GET /api/queue`, and `POST /api/queue/pause` and `/resume`. */
export function queueRoutes({ runs }: HookContext): Route[] {
  const state: Handler = async ({ req, res }) => {
    const paused = await runs.isPaused();
    const { queued, running } = runs.stats();
    const body: z.output<ResponseSchemas["queue"]> = { ok: true, paused, queued, running };
    sendJson(req, res, { status: 200, body });
  };
  const change =
    (isPaused: boolean): Handler =>
    async (call) => {
      await runs.setPaused(isPaused);
      await state(call);
    };
  return [
    { name: "queue", paths: ["/api/queue"], access: "token", handlers: { GET: state } },
    { name: "pause", paths: ["/api/queue/pause"], access: "token", handlers: { POST: change(true) } },
    { name: "resume", paths: ["/api/queue/resume"], access: "token", handlers: { POST: change(false) } },
  ];
}
