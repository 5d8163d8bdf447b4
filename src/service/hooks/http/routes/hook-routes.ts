import { LatentkitError } from "../../../../base/errors.js";
import { HookError } from "../../hook-error.js";
import type { Idempotency } from "../../runs/replies.js";
import type { Started } from "../../runs/run-starter.js";
import { RateWindow } from "../access/rate-window.js";
import { readJsonBody } from "../body.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { hashPayload, readIdempotencyKey } from "../idempotency-key.js";
import { sendJson } from "../responses.js";
import { parseBody } from "../schemas.js";
import { resolveSessionKey } from "../session-key.js";
import { queueMetadata, runPayload, statusUrl } from "./payloads.js";

const START_WINDOW_MS = 10_000;

/** `POST /hooks/agent` and `/hooks/wake`, and their aliases. */
export function hookRoutes(context: HookContext): Route[] {
  const { runs, schemas, config } = context;
  const admission = startRates(context);

  const agent = async (call: Call) => {
    const body = parseBody(schemas.agent, await readBody(context, call));
    const sessionKey = resolveSessionKey(config.sessions, body);
    const name = body.name?.trim() || undefined;
    const timeoutSeconds = body.timeoutSeconds ?? undefined;
    const payload = [body.message, name, sessionKey, timeoutSeconds];
    const admit = admission(call.tokenId, sessionKey);
    const started = await runs.start({
      origin: "agent",
      message: body.message,
      name,
      sessionKey,
      timeoutSeconds,
      idempotency: idempotencyOf(call, "agent", body.idempotencyKey, payload),
      admit: () => {
        refuseMessage(context, body.message);
        admit();
      },
    });
    sendStarted(context, call, started);
  };

  const wake = async (call: Call) => {
    const body = parseBody(schemas.wake, await readBody(context, call));
    const sessionKey = resolveSessionKey(config.sessions, body);
    const timeoutSeconds = body.timeoutSeconds ?? undefined;
    const mode = body.mode ?? "now";
    const payload = [body.text, sessionKey, timeoutSeconds, mode];
    const idempotency = idempotencyOf(call, "wake", body.idempotencyKey, payload);
    if (mode === "now") {
      const admit = admission(call.tokenId, sessionKey);
      const request = { message: body.text, sessionKey, timeoutSeconds, idempotency, admit };
      return sendStarted(context, call, await runs.start({ origin: "wake", ...request }));
    }
    // not a start: its limit is the number of pending events
    const queued = await runs.queueWake({ text: body.text, sessionKey, idempotency });
    sendJson(call.req, call.res, { status: 200, body: queueMetadata(queued), headers: replayHeader(queued) });
  };

  return [
    { name: "agent", paths: ["/hooks/agent", "/api/hooks/agent"], access: "token", handlers: { POST: agent } },
    { name: "wake", paths: ["/hooks/wake", "/api/hooks/wake"], access: "token", handlers: { POST: wake } },
  ];
}

/** Throws invalid_request where the agent refuses the message. */
function refuseMessage({ checkMessage }: HookContext, message: string): void {
  try {
    checkMessage?.(message);
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new HookError("invalid_request", error.message, { cause: error });
  }
}

function readBody({ runs, config, clock }: HookContext, { req, res }: Call): Promise<unknown> {
  if (runs.closing) throw new HookError("shutting_down");
  const { body_bytes, header_seconds } = config.limits;
  return readJsonBody(req, res, { maxBytes: body_bytes, timeoutMs: header_seconds * 1000, clock });
}

function sendStarted(context: HookContext, { req, res }: Call, started: Started): void {
  const headers = { ...replayHeader(started), Location: statusUrl(req.baseUrl, started.runId) };
  sendJson(req, res, { status: 200, body: runPayload(context, req.baseUrl, started), headers });
}

const replayHeader = ({ replayed }: { replayed: boolean }): Record<string, string> =>
  replayed ? { "Idempotent-Replayed": "true" } : {};

function idempotencyOf(
  { req, tokenId }: Call,
  endpoint: Idempotency["endpoint"],
  fromBody: string | null | undefined,
  payload: readonly (string | number | undefined)[],
): Idempotency | undefined {
  const key = readIdempotencyKey(req, fromBody);
  return key === undefined ? undefined : { key, tokenId, endpoint, payloadHash: hashPayload(payload) };
}

/** Limits starts per token and per session. Returns a check to call once a request is certain to be no replay. */
function startRates({ config: { limits }, clock }: HookContext) {
  const options = { windowMs: START_WINDOW_MS, clock };
  const perToken = new RateWindow({ ...options, limit: limits.starts_per_10s });
  const perSession = new RateWindow({ ...options, limit: limits.session_starts_per_10s });
  return (tokenId: string, sessionKey: string) => () => {
    const waitMs = Math.max(perToken.waitMs(tokenId), perSession.waitMs(sessionKey));
    if (waitMs > 0) throw new HookError("rate_limited", undefined, { retryAfterSeconds: waitMs / 1000 });
    perToken.count(tokenId);
    perSession.count(sessionKey);
  };
}
