import { LatentkitError } from "../../base/errors.js";

/** A refusal on the wire. `retryAfterSeconds` becomes the Retry-After header. */
interface Refusal {
  readonly status: number;
  /** The `code` of the error body, if it is not the kind itself; several kinds may share one. */
  readonly code?: string;
  readonly sentence: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly retryAfterSeconds?: number;
  /** Status and code at the Comfy API, where they differ: its clients repeat a 429, and no 503. */
  readonly comfy?: { readonly status: number; readonly code: string };
  /** The API that alone has the refusal; absent: hooks, and the others where it occurs. */
  readonly of?: "Comfy API" | "classic API" | "ComfyUI's APIs";
}

/** The one table of refusals, of hooks and of ComfyUI's APIs. Clients may look for the sentences: only what follows a colon may change. */
export const REFUSALS = {
  unauthorized: { status: 401, sentence: "unauthorized", headers: { "WWW-Authenticate": "Bearer" } },
  hooks_not_configured: { status: 503, sentence: "hooks token is not configured" },
  session_key_override_disabled: { status: 400, sentence: "sessionKey override is disabled" },
  session_key_prefix_denied: { status: 400, sentence: "sessionKey is not allowed by configured prefixes" },
  invalid_request: { status: 400, sentence: "invalid request" },
  request_timeout: { status: 408, code: "invalid_request", sentence: "the request took too long to arrive" },
  unsupported_media_type: { status: 415, sentence: "the body must be JSON in UTF-8 (Content-Type: application/json)" },
  payload_too_large: { status: 413, sentence: "the body is too large" },
  rate_limited: { status: 429, sentence: "too many starts, try again later" },
  auth_rate_limited: { status: 429, sentence: "too many failed attempts, try again later" },
  queue_full: { status: 429, sentence: "the queue is full, try again later", retryAfterSeconds: 5 },
  idempotency_mismatch: { status: 422, sentence: "this idempotency key was used with another payload" },
  run_failed: { status: 500, sentence: "the run failed" },
  run_cancelled: { status: 409, sentence: "the run was cancelled" },
  run_timed_out: { status: 504, sentence: "the run took too long" },
  run_interrupted: { status: 503, sentence: "the run was interrupted" },
  run_expired: { status: 503, sentence: "the run waited too long" },
  run_not_found: { status: 404, sentence: "no such run", comfy: { status: 404, code: "job_not_found" } },
  group_not_found: { status: 404, sentence: "no such group" },
  delivery_not_found: { status: 404, sentence: "no such delivery" },
  method_not_allowed: { status: 405, sentence: "method not allowed" },
  not_found: { status: 404, sentence: "not found" },
  shutting_down: {
    status: 503,
    sentence: "the service is shutting down",
    retryAfterSeconds: 30,
    comfy: { status: 429, code: "deployment_not_ready" },
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
  internal: { status: 500, sentence: "internal error", comfy: { status: 500, code: "upstream_error" } },
  forbidden: { status: 403, sentence: "a page of another site may not call this service", of: "ComfyUI's APIs" },
  invalid_workflow: { status: 422, sentence: "the workflow cannot run", of: "Comfy API" },
  workflow_format_ui: {
    status: 422,
    sentence: "workflow: expected a graph in API format, received one of the editor",
    of: "Comfy API",
  },
  missing_asset: { status: 422, sentence: "the workflow refers to assets that do not exist", of: "Comfy API" },
  idempotency_key_reuse: {
    status: 422,
    sentence: "this idempotency key was already used to start a job",
    of: "Comfy API",
  },
  hash_mismatch: { status: 409, sentence: "expected_hash: the bytes have another hash", of: "Comfy API" },
  asset_in_use: { status: 409, sentence: "the output of a job cannot be deleted before the job", of: "Comfy API" },
  job_not_found: { status: 404, sentence: "no such job", of: "Comfy API" },
  asset_not_found: { status: 404, sentence: "no such asset", of: "Comfy API" },
  blob_not_found: { status: 404, sentence: "no upload has this hash: upload the file first", of: "Comfy API" },
  range_not_satisfiable: { status: 416, sentence: "Range: outside the file", of: "Comfy API" },
  too_many_streams: { status: 429, sentence: "too many streams are open, try again later", of: "Comfy API" },
  storage_full: { status: 507, sentence: "there is no room for uploads, try again later", of: "Comfy API" },
  invalid_prompt: { status: 400, sentence: "the prompt cannot run", of: "classic API" },
  no_prompt: { status: 400, sentence: "prompt: expected a graph in API format", of: "classic API" },
  invalid_prompt_id: {
    status: 400,
    sentence: "prompt_id: expected a lower-case UUID that has not been used",
    of: "classic API",
  },
} as const satisfies Record<string, Refusal>;

export type HookErrorKind = keyof typeof REFUSALS;

/** The row of a refusal, with its code. */
export const refusalOf = (kind: HookErrorKind): Refusal & { readonly code: string } => ({
  code: kind,
  ...(REFUSALS[kind] as Refusal),
});

/** A refusal with everything HTTP needs: `status`, wire `code`, one sentence, headers. Never holds a secret. */
export class HookError extends Error {
  override readonly name = "HookError";
  readonly kind: HookErrorKind;
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: object | undefined;

  /** `message` and `code` replace the table's; `headers` join the table's. */
  constructor(
    kind: HookErrorKind,
    message?: string,
    options: {
      headers?: Record<string, string>;
      retryAfterSeconds?: number;
      code?: string;
      details?: object;
      cause?: unknown;
    } = {},
  ) {
    const refusal = refusalOf(kind);
    super(message ?? refusal.sentence, { cause: options.cause });
    this.kind = kind;
    this.status = refusal.status;
    this.code = options.code ?? refusal.code;
    this.details = options.details;
    const seconds = options.retryAfterSeconds ?? refusal.retryAfterSeconds;
    const retry: Record<string, string> =
      seconds === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(seconds))) };
    this.headers = { ...refusal.headers, ...retry, ...options.headers };
  }
}

/** The refusal of a kind that a LatentkitError means, with its sentence after `prefix`; any other error is itself. */
export const refusedAs = (kind: HookErrorKind, error: unknown, prefix = ""): unknown =>
  error instanceof LatentkitError ? new HookError(kind, prefix + error.message, { cause: error }) : error;

/** Does work that refuses by a LatentkitError. Fails with a refusal of a kind. */
export function asRefusal<T>(kind: HookErrorKind, work: () => T, prefix = ""): T {
  try {
    return work();
  } catch (error) {
    throw refusedAs(kind, error, prefix);
  }
}

/** Handler of a rejection: refusals of these kinds become undefined, any other error is thrown again. */
export const undefinedFor =
  (...kinds: readonly HookErrorKind[]) =>
  (error: unknown): undefined => {
    if (!(error instanceof HookError && kinds.includes(error.kind))) throw error;
  };
