import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { printJson } from "../../../io/json/lossless.js";
import { type HookError, refusalOf } from "../hook-error.js";
import { readAccept } from "./request-headers.js";

const BASE_HEADERS = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };

interface ResponseHead {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
}

/** Sends JSON whatever the application's settings; a HEAD gets the headers of a GET without the body. */
export function sendJson(
  req: IncomingMessage,
  res: ServerResponse,
  { body, ...head }: ResponseHead & { body: unknown },
): void {
  sendBytes(req, res, { ...head, bytes: Buffer.from(JSON.stringify(body)) });
}

/** As `sendJson`, for JSON that is encoded already. */
export function sendBytes(
  req: IncomingMessage,
  res: ServerResponse,
  { status, bytes, headers, type = "application/json; charset=utf-8" }: ResponseHead & { bytes: Buffer },
): void {
  const Vary = [res.getHeader("Vary"), headers?.Vary].filter((value) => value !== undefined).join(", ");
  const own = { ...BASE_HEADERS, ...headers, ...(Vary !== "" && { Vary }) };
  res.writeHead(status, { ...own, "Content-Type": type, "Content-Length": bytes.length });
  res.end(req.method === "HEAD" ? undefined : bytes);
}

const PROBLEM = "application/problem+json";

type Send = (req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string) => void;

/** How each API says a refusal: hooks, the Comfy API, and ComfyUI's classic one. */
export const SEND_ERROR = { hooks: sendError, comfy: sendComfyError, classic: sendClassicError } satisfies Record<
  string,
  Send
>;
export type Door = keyof typeof SEND_ERROR;

/** Sends a refusal as JSON, or as RFC 9457 where the client prefers it. */
export function sendError(req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string): void {
  const { status } = error;
  const headers = { Vary: "Accept", ...error.headers, "X-Request-Id": requestId };
  const body = errorBody(error, requestId);
  if (wantsProblem(req.headers.accept)) {
    const title = STATUS_CODES[status] ?? "Error";
    const problem = { type: "about:blank", title, status, detail: error.message, ...body };
    sendJson(req, res, { status, body: problem, headers, type: PROBLEM });
  } else {
    sendJson(req, res, { status, body, headers });
  }
}

/** The body of every error of hooks. */
export function errorBody(error: HookError, requestId: string) {
  return { ok: false as const, error: error.message, code: error.code, request_id: requestId };
}

/** Whether problem+json is named, and weighs no less than plain JSON; a wildcard range does not count. */
function wantsProblem(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = readAccept(accept);
  const problem = weights.get(PROBLEM) ?? 0;
  const json = weights.get("application/json") ?? weights.get("application/*") ?? weights.get("*/*") ?? 0;
  return problem > 0 && problem >= json;
}

/** Sends a refusal in the envelope of the Comfy API. */
function sendComfyError(req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string): void {
  const { kind, message, details } = error;
  const { "Retry-After": retryAfter, ...headers } = error.headers;
  const { status, code } = refusalOf(kind).comfy ?? error;
  // a client that repeats a wrong token in silence would never tell its user
  const retry: Record<string, string> =
    retryAfter === undefined || kind === "auth_rate_limited" ? {} : { "Retry-After": retryAfter };
  sendJson(req, res, {
    status,
    headers: { ...headers, ...retry, "X-Request-Id": requestId },
    body: { error: { code, message, details: { ...details, request_id: requestId } } },
  });
}

/** Facts of a refusal under the names of ComfyUI's clients. */
interface ClassicDetails {
  readonly details?: string;
  readonly extra_info?: Readonly<Record<string, unknown>>;
  readonly node_errors?: Readonly<Record<string, unknown>>;
}

/** Sends a refusal as ComfyUI does. */
function sendClassicError(req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string): void {
  const { details = "", extra_info = {}, node_errors = {} } = (error.details ?? {}) as ClassicDetails;
  const body = { error: { type: error.code, message: error.message, details, extra_info }, node_errors };
  sendBytes(req, res, {
    status: error.status,
    headers: { ...error.headers, "X-Request-Id": requestId },
    bytes: Buffer.from(printJson(body)),
  });
}
