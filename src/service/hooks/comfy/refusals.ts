import type { IncomingMessage, ServerResponse } from "node:http";
import { HookError, type HookErrorKind } from "../hook-error.js";
import { sendJson } from "../http/responses.js";

/** Refusals that the Comfy API has and hooks have not. Programs read the codes. */
const REFUSALS = {
  invalid_workflow: 422,
  workflow_format_ui: 422,
  missing_asset: 422,
  idempotency_key_reuse: 422,
  hash_mismatch: 409,
  asset_in_use: 409,
  job_not_found: 404,
  asset_not_found: 404,
  blob_not_found: 404,
  range_not_satisfiable: 416,
  too_many_streams: 429,
  storage_full: 507,
} as const;

/** A refusal of the Comfy API, which `sendComfyError` writes. */
export function refusal(
  code: keyof typeof REFUSALS,
  message: string,
  options: { details?: object; headers?: Record<string, string>; retryAfterSeconds?: number; cause?: unknown } = {},
): HookError {
  return new HookError("invalid_request", message, { ...options, status: REFUSALS[code], code });
}

/** The contract's names for refusals of hooks. Its clients repeat a 429, and no 503. */
const CODES: Partial<Record<HookErrorKind, { readonly status: number; readonly code: string }>> = {
  run_not_found: { status: 404, code: "job_not_found" },
  shutting_down: { status: 429, code: "deployment_not_ready" },
  internal: { status: 500, code: "upstream_error" },
};

/** Sends a refusal in the envelope of the Comfy API. */
export function sendComfyError(req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string): void {
  const { kind, message, details } = error;
  const { "Retry-After": retryAfter, ...headers } = error.headers;
  const { status, code } = CODES[kind] ?? error;
  // a client that repeats a wrong token in silence would never tell its user
  const retry: Record<string, string> =
    retryAfter === undefined || kind === "auth_rate_limited" ? {} : { "Retry-After": retryAfter };
  sendJson(req, res, {
    status,
    headers: { ...headers, ...retry, "X-Request-Id": requestId },
    body: { error: { code, message, details: { ...details, request_id: requestId } } },
  });
}
