import type { z } from "zod";
import { describe, LatentkitError, suggest } from "../../../../base/errors.js";
import { loadZod } from "../../../../base/lazy-packages.js";
import type { RunGraph } from "../../../agent.js";
import { HookError, type HookErrorKind } from "../../hook-error.js";
import type { Idempotency } from "../../runs/replies.js";
import type { Started, StartRequest } from "../../runs/run-starter.js";
import { arrivalLimits } from "../arrival.js";
import type { BodyLimits } from "../body.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { hashPayload } from "../idempotency-key.js";
import { waitSeconds } from "../negotiation/prefer.js";
import { sendJson } from "../responses.js";
import { traceparentOf } from "../traceparent.js";
import { runPayload, statusUrl } from "./payloads.js";
import { sendEnded, waitForEnd } from "./waited.js";

/** A start as a route asks for it. `tokenId`: the token or sender that the rates count. */
export type Start = Omit<StartRequest, "admit" | "idempotency"> & {
  readonly tokenId: string;
  readonly endpoint: Idempotency["endpoint"];
  readonly idempotencyKey: string | undefined;
  /** Name of the graph that the request chose. */
  readonly graphName?: string | undefined;
  /** Whether message and graph are those of an earlier run, which no request brought for the agent to check. */
  readonly isUnchecked?: boolean;
};

/** Refusals of a start. */
export const OF_START = [
  "session_key_override_disabled",
  "session_key_prefix_denied",
  "idempotency_mismatch",
  "rate_limited",
  "queue_full",
  "shutting_down",
] as const satisfies readonly HookErrorKind[];

/** Responses of a start, which may wait for the end of its run. `others`: bodies where none is started. */
export function startAnswers(
  { schemas }: HookContext,
  ...others: z.ZodType[]
): Required<Pick<Route, "responses" | "refusals">> {
  const accepted = loadZod().z.union([schemas.runPayload, schemas.runStatus, ...others]);
  return {
    responses: {
      200: { description: "The run is accepted. With wait: it has succeeded.", json: accepted, type: "image/*" },
      202: { description: "With wait: the run goes on.", json: schemas.runPayload },
    },
    refusals: [...OF_START, "run_failed", "run_cancelled", "run_timed_out", "run_interrupted", "run_expired"],
  };
}

/** Limits of a body that may start a run. Fails with shutting_down. */
export function startBodyLimits({ runs, config, clock }: HookContext, maxBytes = config.limits.body_bytes): BodyLimits {
  if (runs.closing) throw new HookError("shutting_down");
  return { maxBytes, ...arrivalLimits(config.limits, clock) };
}

/** Starts a run, or finds the one of the same key, and responds with it. */
export async function respondToStart(context: HookContext, call: Call, start: Start): Promise<void> {
  const { tokenId, endpoint, idempotencyKey: key, origin, message, sessionKey } = start;
  const graph = start.graph ?? namedGraph(context, start.graphName);
  // no spread: every start pays for it
  const started = await context.runs.start({
    id: start.id,
    origin,
    message,
    name: start.name,
    sessionKey,
    graph,
    timeoutSeconds: start.timeoutSeconds,
    priority: start.priority,
    delaySeconds: start.delaySeconds,
    deadlineSeconds: start.deadlineSeconds,
    tags: start.tags,
    traceparent: traceparentOf(call.req),
    idempotency: key === undefined ? undefined : { key, tokenId, endpoint, payloadHash: hashPayload(payloadOf(start)) },
    admit() {
      if (!start.isUnchecked) refuseMessage(context, message, graph);
      context.startRates.count(tokenId, sessionKey === undefined ? [] : [sessionKey]);
    },
  });
  await respond(context, call, started);
}

/** Parts of a request that a repetition under the same key must have the same. */
function payloadOf(start: Start): (string | number | undefined)[] {
  const { origin, message, name, sessionKey, timeoutSeconds, graphName } = start;
  const { priority = 0, delaySeconds = 0, deadlineSeconds = 0, tags = [] } = start;
  const terms = JSON.stringify([priority, delaySeconds, deadlineSeconds, ...tags]);
  return [origin, message, name, sessionKey, timeoutSeconds, graphName, terms];
}

/** Throws invalid_request for a name that is none of the agent's graphs. */
export function namedGraph({ agent }: HookContext, name: string | undefined): RunGraph | undefined {
  if (name === undefined) return undefined;
  const graph = agent.graphs?.find(name);
  if (graph !== undefined) return graph;
  const names = agent.graphs?.names ?? [];
  const { hint } = suggest(name, names);
  const expected = names.length === 0 ? "none: the agent has no graphs" : `one of ${names.join(", ")}`;
  throw new HookError("invalid_request", `graph: expected ${expected}, received ${describe(name)}.${hint}`);
}

/** Throws invalid_request where the agent refuses the message. */
export function refuseMessage({ agent }: HookContext, message: string, graph: RunGraph | undefined): void {
  try {
    agent.check?.(message, graph);
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new HookError("invalid_request", error.message, { cause: error });
  }
}

/** Responds with a started run or, where the client prefers to wait, with the run's result. */
async function respond(context: HookContext, call: Call, started: Started): Promise<void> {
  const { req, res } = call;
  const { runId } = started;
  const headers = { ...replayHeader(started), Location: statusUrl(req.baseUrl, runId) };
  const send = (status: number, more = {}) =>
    sendJson(req, res, { status, body: runPayload(context, req.baseUrl, started), headers: { ...headers, ...more } });
  const preferred = waitSeconds(req.headers.prefer?.toString());
  const seconds = Math.min(preferred ?? 0, context.config.limits.wait_seconds);
  if (seconds === 0) return send(200);
  const vary = { Vary: "Accept, Prefer" };
  const ended = await waitForEnd(context, res, runId, seconds);
  if (res.destroyed) return;
  if (ended === undefined) return send(202, vary);
  await sendEnded(context, call, ended, { ...headers, ...vary, "Preference-Applied": `wait=${seconds}` });
}

export const replayHeader = ({ replayed }: { replayed: boolean }): Record<string, string> =>
  replayed ? { "Idempotent-Replayed": "true" } : {};
