/** A refusal on the wire. `retryAfterSeconds` becomes the Retry-After header. */
interface Refusal {
  readonly status: number;
  /** The `code` of the error body; several kinds may share one. */
  readonly code: string;
  readonly sentence: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly retryAfterSeconds?: number;
}

/** The one table of refusals of the hook service. Clients may look for the sentences: they do not change, but for what follows a colon. */
export const REFUSALS = {
  unauthorized: {
    status: 401,
    code: "unauthorized",
    sentence: "unauthorized",
    headers: { "WWW-Authenticate": "Bearer" },
  },
  hooks_not_configured: { status: 503, code: "hooks_not_configured", sentence: "hooks token is not configured" },
  session_key_override_disabled: {
    status: 400,
    code: "session_key_override_disabled",
    sentence: "sessionKey override is disabled",
  },
  session_key_prefix_denied: {
    status: 400,
    code: "session_key_prefix_denied",
    sentence: "sessionKey is not allowed by configured prefixes",
  },
  invalid_request: { status: 400, code: "invalid_request", sentence: "invalid request" },
  request_timeout: { status: 408, code: "invalid_request", sentence: "the request took too long to arrive" },
  unsupported_media_type: {
    status: 415,
    code: "unsupported_media_type",
    sentence: "the body must be JSON in UTF-8 (Content-Type: application/json)",
  },
  payload_too_large: { status: 413, code: "payload_too_large", sentence: "the body is too large" },
  rate_limited: { status: 429, code: "rate_limited", sentence: "too many starts, try again later" },
  auth_rate_limited: { status: 429, code: "auth_rate_limited", sentence: "too many failed attempts, try again later" },
  queue_full: { status: 429, code: "queue_full", sentence: "the queue is full, try again later", retryAfterSeconds: 5 },
  idempotency_mismatch: {
    status: 422,
    code: "idempotency_mismatch",
    sentence: "this idempotency key was used with another payload",
  },
  run_failed: { status: 500, code: "run_failed", sentence: "the run failed" },
  run_cancelled: { status: 409, code: "run_cancelled", sentence: "the run was cancelled" },
  run_timed_out: { status: 504, code: "run_timed_out", sentence: "the run took too long" },
  run_interrupted: { status: 503, code: "run_interrupted", sentence: "the run was interrupted" },
  run_expired: { status: 503, code: "run_expired", sentence: "the run waited too long" },
  run_not_found: { status: 404, code: "run_not_found", sentence: "no such run" },
  group_not_found: { status: 404, code: "group_not_found", sentence: "no such group" },
  delivery_not_found: { status: 404, code: "delivery_not_found", sentence: "no such delivery" },
  method_not_allowed: { status: 405, code: "method_not_allowed", sentence: "method not allowed" },
  not_found: { status: 404, code: "not_found", sentence: "not found" },
  shutting_down: {
    status: 503,
    code: "shutting_down",
    sentence: "the service is shutting down",
    retryAfterSeconds: 30,
  },
  store_unavailable: {
    status: 503,
    code: "internal",
    sentence: "the store is not available, try again later",
    retryAfterSeconds: 2,
  },
  files_unavailable: {
    status: 503,
    code: "internal",
    sentence: "the files are not available, try again later",
    retryAfterSeconds: 2,
  },
  internal: { status: 500, code: "internal", sentence: "internal error" },
} as const satisfies Record<string, Refusal>;

export type HookErrorKind = keyof typeof REFUSALS;

/** A refusal with everything HTTP needs: `status`, wire `code`, one sentence, headers. Never holds a secret. */
export class HookError extends Error {
  override readonly name = "HookError";
  readonly kind: HookErrorKind;
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: object | undefined;

  /** `message`, `status` and `code` replace the table's; `headers` join the table's. */
  constructor(
    kind: HookErrorKind,
    message?: string,
    options: {
      headers?: Record<string, string>;
      retryAfterSeconds?: number;
      status?: number;
      code?: string;
      details?: object;
      cause?: unknown;
    } = {},
  ) {
    const refusal: Refusal = REFUSALS[kind];
    super(message ?? refusal.sentence, { cause: options.cause });
    this.kind = kind;
    this.status = options.status ?? refusal.status;
    this.code = options.code ?? refusal.code;
    this.details = options.details;
    const seconds = options.retryAfterSeconds ?? refusal.retryAfterSeconds;
    const retry: Record<string, string> =
      seconds === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(seconds))) };
    this.headers = { ...refusal.headers, ...retry, ...options.headers };
  }
}
