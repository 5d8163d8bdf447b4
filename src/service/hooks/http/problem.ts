import type { IncomingMessage, ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import type { HookError } from "../hook-error.js";

const PROBLEM = "application/problem+json";
const BASE_HEADERS = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };

/** Sends JSON whatever the settings of the host application; a HEAD gets the same headers without the body. */
export function sendJson(
  req: IncomingMessage,
  res: ServerResponse,
  answer: { status: number; body: unknown; headers?: Readonly<Record<string, string>>; type?: string },
): void {
  const { body, ...rest } = answer;
  sendBytes(req, res, { ...rest, bytes: Buffer.from(JSON.stringify(body)) });
}

/** As `sendJson`, for JSON that is bytes already. */
export function sendBytes(
  req: IncomingMessage,
  res: ServerResponse,
  answer: { status: number; bytes: Buffer; headers?: Readonly<Record<string, string>>; type?: string },
): void {
  const type = answer.type ?? "application/json; charset=utf-8";
  res.writeHead(answer.status, {
    ...BASE_HEADERS,
    ...answer.headers,
    "Content-Type": type,
    "Content-Length": answer.bytes.length,
  });
  res.end(req.method === "HEAD" ? undefined : answer.bytes);
}

/** A refusal as JSON, or as RFC 9457 where the client asks for it. */
export function sendError(req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string): void {
  const { status } = error;
  const headers = { ...error.headers, Vary: "Accept", "X-Request-Id": requestId };
  const body = errorBody(error, requestId);
  if (wantsProblem(req.headers.accept)) {
    const title = STATUS_CODES[status] ?? "Error";
    const problem = { type: "about:blank", title, status, detail: error.message, ...body };
    sendJson(req, res, { status, body: problem, headers, type: PROBLEM });
  } else {
    sendJson(req, res, { status, body, headers });
  }
}

/** The one shape of errors. */
export function errorBody(error: HookError, requestId: string) {
  return { ok: false as const, error: error.message, code: error.code, request_id: requestId };
}

/** Named, and liked no less than plain JSON: a range such as `*` + `/*` is no wish for it. */
function wantsProblem(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = readAccept(accept);
  const problem = weights.get(PROBLEM) ?? 0;
  const json = weights.get("application/json") ?? weights.get("application/*") ?? weights.get("*/*") ?? 0;
  return problem > 0 && problem >= json;
}

/** Media ranges with their weights, as RFC 9110 has them; a range whose weight is none is left out. */
function readAccept(accept: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const range of accept.match(/(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g) ?? []) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, "") ?? "1";
    if (!/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) continue;
    weights.set(type, Math.max(Number(weight), weights.get(type) ?? 0));
  }
  return weights;
}
