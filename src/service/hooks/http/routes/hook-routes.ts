import { HookError } from "../../hook-error.js";
import type { StartRequest } from "../../runs/run-starter.js";
import { maxRunSeconds } from "../../runs/terms.js";
import { readJsonBody } from "../body.js";
import { type Call, type Route, requireRunId } from "../call.js";
import { hasBody } from "../connection.js";
import type { HookContext } from "../context.js";
import { hashPayload, readIdempotencyKey, traceparentOf } from "../request-headers.js";
import { parseBody, requestedSessionKey, termsFrom } from "../request-schemas.js";
import { sendJson } from "../responses.js";
import { queueMetadata } from "./payloads.js";
import { idempotencyOf, namedGraph, replayHeader, respondToStart, startAnswers, startBodyLimits } from "./start.js";

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
    const idempotency = idempotencyOf(key, { ...scope, payloadHash });
    const queued = await runs.queueWake({ text, sessionKey, idempotency });
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

// Keeps the earlier run's session whatever the policy is now: only a session that has a run can be named.
/** A new run with what an earlier one had, as far as the body does not change it. */
export function againRoute(context: HookContext): Route {
  const { runs, schemas, parameters, config } = context;
  const again = async (call: Call) => {
    const { req, res, tokenId } = call;
    const limits = startBodyLimits(context);
    const body = parseBody(schemas.again, hasBody(req) ? await readJsonBody(req, res, limits) : {});
    const earlier = await runs.get(requireRunId(call));
    if (earlier.origin === "batch") {
      throw new HookError(
        "invalid_request",
        "a batch run cannot be started again here: use `latentkit render --store`",
      );
    }
    const message = body.message ?? earlier.message;
    if (message === "" && body.graph != null) {
      throw new HookError("invalid_request", "message: required, the earlier run had none");
    }
    // another default time now is no reason to refuse the run's own
    const timeoutSeconds = body.timeoutSeconds ?? Math.min(earlier.timeoutSeconds, maxRunSeconds(config.limits));
    const start: StartRequest = {
      origin: body.message == null && earlier.origin !== "agent" ? "wake" : "agent",
      message,
      name: (body.name ?? earlier.name)?.trim() || undefined,
      sessionKey: requestedSessionKey(config.sessions, body) ?? earlier.sessionKey,
      graph: body.graph == null ? earlier.graph : namedGraph(context, body.graph),
      promptFacts: body.graph == null ? earlier.promptFacts : undefined,
      traceparent: traceparentOf(req),
      // a delay and a deadline were those of the earlier request
      ...termsFrom(body),
      timeoutSeconds,
      priority: body.priority ?? earlier.priority,
      tags: body.tags ?? earlier.tags,
    };
    await respondToStart(context, call, start, {
      // events of a heartbeat, or a graph that came with its request
      isUnchecked: body.message == null && body.graph == null && earlier.origin !== "agent",
      tokenId,
      endpoint: `again/${earlier.id}`,
      idempotencyKey: readIdempotencyKey(req, body.idempotencyKey),
    });
  };
  const { key, wait } = parameters;
  const { responses, refusals } = startAnswers(context);
  return {
    name: "again",
    paths: ["/api/runs/:id/again"],
    method: "POST",
    summary: "Start a run again, as it was or changed",
    section: "running-again",
    headers: { ...key, ...wait },
    body: { schema: schemas.again, isOptional: true },
    responses,
    refusals: [...refusals, "run_not_found"],
    handle: again,
  };
}

/** The graphs that a request can name, with the schemas of their messages. */
export const graphsRoute = ({ agent, schemas }: HookContext): Route => ({
  name: "graphs",
  paths: ["/api/graphs"],
  method: "GET",
  summary: "List the graphs that a request can name, with the schemas of their messages",
  section: "several-graphs",
  responses: { 200: { json: schemas.graphs } },
  handle({ req, res }) {
    const names = agent.graphs?.names ?? [];
    const graphs = names.map((name) => ({
      name,
      default: name === agent.graphs?.default.name,
      schema: agent.graphs?.schemaOf(name),
    }));
    sendJson(req, res, { status: 200, body: { ok: true, graphs } });
  },
});
