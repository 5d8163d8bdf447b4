import type { Handler, Route } from "../call.js";
import type { HookContext } from "../context.js";
import type { Body } from "../response-schemas.js";
import { sendJson } from "../responses.js";

/** The queue as a whole. */
export function queueRoutes({ runs, schemas }: HookContext): Route[] {
  const state: Handler = async ({ req, res }) => {
    const paused = await runs.isPaused();
    const { queued, running } = runs.stats();
    const body: Body<"queue"> = { ok: true, paused, queued, running };
    sendJson(req, res, { status: 200, body });
  };
  const change =
    (isPaused: boolean): Handler =>
    async (call) => {
      await runs.setPaused(isPaused);
      await state(call);
    };
  const answers = {
    section: "pausing",
    responses: { 200: { json: schemas.queue } },
  } as const;
  return [
    {
      name: "queue",
      paths: ["/api/queue"],
      method: "GET",
      summary: "Count queued and running runs, and tell whether runs start",
      ...answers,
      handle: state,
    },
    {
      name: "pause",
      paths: ["/api/queue/pause"],
      method: "POST",
      summary: "Pause the queue; running runs finish, a restart changes nothing",
      ...answers,
      handle: change(true),
    },
    {
      name: "resume",
      paths: ["/api/queue/resume"],
      method: "POST",
      summary: "Let runs start again",
      ...answers,
      handle: change(false),
    },
  ];
}
