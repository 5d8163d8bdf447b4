import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import { BARE_TOKEN_HEADERS } from "../../../token-headers.js";
import type { HookConfig } from "../../hook-config.js";

/** Time for which a browser remembers that it may send a request. */
const PREFLIGHT_SECONDS = "600";

/** Headers that a page may send beyond those that every page may. */
const REQUEST_HEADERS =
  "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Prefer, Range, traceparent, User-Agent, webhook-id";

/** Headers of responses that a page may read beyond those that every page may. */
const RESPONSE_HEADERS =
  "Accept-Ranges, Allow, Content-Disposition, Content-Location, Content-Range, ETag, Idempotent-Replayed, Location, Preference-Applied, Retry-After, WWW-Authenticate, X-Request-Id";

/** Whether a request is that of a page whose origin the configuration allows. */
export const isAllowedOrigin = (
  { allowed_origins }: Pick<HookConfig["web"], "allowed_origins">,
  req: IncomingMessage,
) => req.headers.origin !== undefined && allowed_origins.includes(req.headers.origin);

/**
 * Lets pages of the allowed origins read the response, as CORS has it. Sends the response to a browser's question whether
 * the page may send a request with one of the methods, and returns true then.
 */
export function allowCrossOrigin(
  web: Pick<HookConfig["web"], "allowed_origins">,
  req: Request,
  res: Response,
  methods: readonly string[],
): boolean {
  if (web.allowed_origins.length === 0) return false;
  res.vary("Origin");
  if (!isAllowedOrigin(web, req)) return false;
  res.setHeader("Access-Control-Allow-Origin", req.headers.origin!);
  if (req.method !== "OPTIONS" || req.headers["access-control-request-method"] === undefined || methods.length === 0) {
    res.setHeader("Access-Control-Expose-Headers", RESPONSE_HEADERS);
    return false;
  }
  res.writeHead(204, {
    "Access-Control-Allow-Methods": methods.join(", "),
    "Access-Control-Allow-Headers": [REQUEST_HEADERS, ...BARE_TOKEN_HEADERS].join(", "),
    "Access-Control-Max-Age": PREFLIGHT_SECONDS,
  });
  res.end();
  return true;
}
