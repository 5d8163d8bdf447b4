import { readJsonBody } from "../body.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { hashPayload, readIdempotencyKey } from "../idempotency-key.js";
import { sendJson } from "../responses.js";
import { parseBody, termsFrom } from "../schemas.js";
import { requestedSessionKey } from "../session-key.js";
import { queueMetadata } from "./payloads.js";
import { replayHeader, respondToStart, startAnswers, startBodyLimits } from "./start.js";

/** Starts of runs, and events that wait for one. */
export function hookRoutes(context: HookContext): Route[] {
  const { runs, schemas, parameters, config } = context;

  const agent = async (call: Call) => {
    const body = parseBody(schemas.agent, await readJsonBody(call.req, call.res, startBodyLimits(context)));
    await respondToStart(context, call, {
      origin: "agent",
      message: body.message,
      name: body.name?.trim() || undefined,
      sessionKey: requestedSessionKey(config.sessions, body) ?? config.sessions.defaultKey,
      ...termsFrom(body),
      graphName: body.graph ?? undefined,
      tokenId: call.tokenId,
      endpoint: "agent",
      idempotencyKey: readIdempotencyKey(call.req, body.idempotencyKey),
    });
  };

  const wake = async (call: Call) => {
    const body = parseBody(schemas.wake, await readJsonBody(call.req, call.res, startBodyLimits(context)));
    const { req, res, tokenId } = call;
    const { text } = body;
    const sessionKey = requestedSessionKey(config.sessions, body) ?? config.sessions.wakeKey;
    const timeoutSeconds = body.timeoutSeconds ?? undefined;
    const key = readIdempotencyKey(req, body.idempotencyKey);
    const scope = { tokenId, endpoint: "wake" } as const;
    if (body.mode !== "next-heartbeat") {
      const request = { origin: "wake", message: text, sessionKey, timeoutSeconds } as const;
      return respondToStart(context, call, { ...request, ...scope, idempotencyKey: key });
    }
    const payloadHash = hashPayload([text, sessionKey, timeoutSeconds, body.mode]);
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
