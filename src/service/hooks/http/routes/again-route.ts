import { HookError } from "../../hook-error.js";
import type { StartRequest } from "../../runs/run-starter.js";
import { maxRunSeconds } from "../../runs/terms.js";
import { readJsonBody } from "../body.js";
import { type Call, type Route, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";
import { readIdempotencyKey } from "../idempotency-key.js";
import { hasBody } from "../linger.js";
import { parseBody, termsFrom } from "../schemas.js";
import { requestedSessionKey } from "../session-key.js";
import { traceparentOf } from "../traceparent.js";
import { namedGraph, respondToStart, startAnswers, startBodyLimits } from "./start.js";

// decision 249
/** A new run with what an earlier one had, as far as the body does not change it. */
export function againRoute(context: HookContext): Route {
  const { runs, schemas, parameters, config } = context;
  const again = async (call: Call) => {
    const { req, res, tokenId } = call;
    const limits = startBodyLimits(context);
    const body = parseBody(schemas.again, hasBody(req) ? await readJsonBody(req, res, limits) : {});
    const earlier = await runs.get(requireRunId(call));
    if (earlier.origin === "batch") {
      throw new HookError("invalid_request", "a run of a batch is started by `latentkit render --store` alone");
    }
    const message = body.message ?? earlier.message;
    if (message === "" && body.graph != null) {
      throw new HookError("invalid_request", "message: is required with another graph: the earlier run has none");
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
    summary: "Start a run with the message of another one, or a changed one",
    section: "running-again",
    headers: { ...key, ...wait },
    body: { schema: schemas.again, isOptional: true },
    responses,
    refusals: [...refusals, "run_not_found"],
    handle: again,
  };
}
