import { maxRunSeconds } from "../../runs/terms.js";
import { readJsonBody } from "../body.js";
import { type Call, type Route, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";
import { readIdempotencyKey } from "../idempotency-key.js";
import { hasBody } from "../linger.js";
import { parseBody, termsFrom } from "../schemas.js";
import { resolveSessionKey } from "../session-key.js";
import { respondToStart, startBodyLimits } from "./start.js";

// decision 249
/** `POST /api/runs/{id}/again`: a new run with what an earlier one had, as far as the body does not change it. */
export function againRoute(context: HookContext): Route {
  const { runs, schemas, config } = context;
  const again = async (call: Call) => {
    const { req, res, tokenId } = call;
    const limits = startBodyLimits(context);
    const body = parseBody(schemas.again, hasBody(req) ? await readJsonBody(req, res, limits) : {});
    const earlier = await runs.get(requireRunId(call));
    const message = body.message ?? earlier.message;
    // another default time now is no reason to refuse the run's own
    const timeoutSeconds = body.timeoutSeconds ?? Math.min(earlier.timeoutSeconds, maxRunSeconds(config.limits));
    await respondToStart(context, call, {
      // events of a wake or a heartbeat are no message that the agent has to check
      origin: body.message == null && earlier.origin !== "agent" ? "wake" : "agent",
      message,
      name: (body.name ?? earlier.name)?.trim() || undefined,
      sessionKey: resolveSessionKey({ ...config.sessions, defaultKey: earlier.sessionKey }, body),
      // a delay and a deadline were those of the earlier request
      ...termsFrom(body),
      timeoutSeconds,
      priority: body.priority ?? earlier.priority,
      tags: body.tags ?? earlier.tags,
      tokenId,
      endpoint: `again/${earlier.id}`,
      idempotencyKey: readIdempotencyKey(req, body.idempotencyKey),
    });
  };
  return { name: "again", paths: ["/api/runs/:id/again"], access: "token", handlers: { POST: again } };
}
