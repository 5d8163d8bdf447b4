import type { StartRequest } from "../../runs/run-starter.js";
import { readJsonBody } from "../body.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { hashPayload, readIdempotencyKey } from "../idempotency-key.js";
import { sendJson } from "../responses.js";
import { parseBody, termsFrom } from "../schemas.js";
import { requestedSessionKey } from "../session-key.js";
import { traceparentOf } from "../traceparent.js";
import { queueMetadata } from "./payloads.js";
import { namedGraph, replayHeader, respondToStart, startAnswers, startBodyLimits } from "./start.js";

/** Starts of runs, and events that wait for one. */
export function hookRoutes(context: HookContext): Route[] {
  const { runs, schemas, parameters, config } = context;

  const agent = async (call: Call) => {
    const body = parseBody(schemas.agent, await readJsonBody(call.req, call.res, startBodyLimits(context)));
    const start: StartRequest = {
      origin: "agent",
      message: body.message,
      name: body.name?.trim() || undefined,
      sessionKey: requestedSessionKey(config.sessions, body) ?? config.sessions.defaultKey,
      graph: namedGraph(context, body.graph),
      traceparent: traceparentOf(call.req),
      ...termsFrom(body),
    };
    const idempotencyKey = readIdempotencyKey(call.req, body.idempotencyKey);
    await respondToStart(context, call, start, { tokenId: call.tokenId, endpoint: "agent", idempotencyKey });
  };

  const wake = async (call: Call) => {
    const body = parseBody(schemas.wake, await readJsonBody(call.req, call.res, startBodyLimits(context)));
    const { req, res, tokenId } = call;
    const { text } = body;
    const sessionKey = requestedSessionKey(config.sessions, body) ?? config.sessions.wakeKey;
    const key = readIdempotencyKey(req, body.idempotencyKey);
    const scope = { tokenId, endpoint: "wake" } as const;
    if (body.mode !== "next-heartbeat") {
      const terms = termsFrom(body);
      const start = { origin: "wake", message: text, sessionKey, traceparent: traceparentOf(req), ...terms } as const;
      return respondToStart(context, call, start, { ...scope, idempotencyKey: key });
    }
    const payloadHash = hashPayload([body.mode, text, sessionKey, body.timeoutSeconds]);
    // not a start: its limit is the number of pending events
    const queued = await runs.queueWake({
      text,
      sessionKey,
      idempotency: key === undefined ? key : { ...scope, key, payloadHash },
    });
    sendJson(req, res, { status: 200, body: queueMetadata(queued), headers: replayHeader(queued) });
  };

  const { key, wait } = parameters;
  return [
    {
      name: "agent",
      paths: ["/hooks/agent", "/api/hooks/agent"],
      method: "POST",
      summary: "Start a run",
      headers: { ...key, ...wait },
      body: { schema: schemas.agent },
      ...startAnswers(context),
      handle: agent,
    },
    {
      name: "wake",
      paths: ["/hooks/wake", "/api/hooks/wake"],
      method: "POST",
      summary: "Start a run (mode `now`), or queue an event for the next heartbeat (`next-heartbeat`)",
      section: "heartbeat",
      headers: { ...key, ...wait },
      body: { schema: schemas.wake },
      ...startAnswers(context, schemas.queueMetadata),
      handle: wake,
    },
  ];
}
