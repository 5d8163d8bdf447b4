import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Request, Response } from "express";
import { BARE_TOKEN_HEADERS } from "../../../log.js";
import type { HookConfig } from "../../hook-config.js";
import { HookError } from "../../hook-error.js";

/** Time for which a browser remembers that it may send a request. */
const PREFLIGHT_SECONDS = "600";

/** Headers that a page may send beyond those that every page may. */
const REQUEST_HEADERS =
  "Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Prefer, Range, traceparent, User-Agent, webhook-id";

/** Headers of responses that a page may read beyond those that every page may. */
const RESPONSE_HEADERS =
  "Accept-Ranges, Allow, Content-Disposition, Content-Location, Content-Range, ETag, Idempotent-Replayed, Location, Preference-Applied, Retry-After, WWW-Authenticate, X-Request-Id";

/** Whether a request is that of a page whose origin the configuration allows. */
const isAllowedOrigin = ({ allowed_origins }: Pick<HookConfig["web"], "allowed_origins">, req: IncomingMessage) =>
  req.headers.origin !== undefined && allowed_origins.includes(req.headers.origin);

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

// decisions: Comfy APIs are closed by default
/**
 * Refuses what a page of another site sends that the configuration does not allow: it could start prompts by a form or an
 * image, without any preflight. Where the API is open, also a name that its owner may have pointed at this machine. Fails
 * with forbidden.
 */
export function refuseForeign({ web }: Pick<HookConfig, "web">, req: IncomingMessage, access: "open" | "token"): void {
  const { host, origin, "sec-fetch-site": site = "none" } = req.headers;
  refuseForeignOrigin({ web }, req);
  if (origin === undefined && site !== "none" && site !== "same-origin") throw foreign();
  if (access !== "open" || needsNoResolver(host)) return;
  if (host !== undefined && host === hostOf(web.public_url)) return;
  throw new HookError("forbidden", "Host: expected an IP address, localhost or the host of public_url");
}

/** Refuses a request with an `Origin` that is neither the service's own nor allowed. Fails as refuseForeign. */
export function refuseForeignOrigin({ web }: Pick<HookConfig, "web">, req: IncomingMessage): void {
  const { host, origin } = req.headers;
  if (origin === undefined || isAllowedOrigin(web, req)) return;
  const own = [host, hostOf(web.public_url), web.trust_proxy ? lastOf(req.headers["x-forwarded-host"]) : undefined];
  const from = hostOf(origin);
  if (from === undefined || !own.includes(from)) throw foreign();
}

const foreign = () => new HookError("forbidden");

/** Host and port of a URL; undefined for a text that is none, or has no host. */
function hostOf(url: string | undefined): string | undefined {
  try {
    return new URL(url ?? "").host || undefined;
  } catch {
    return undefined;
  }
}

/** Whether a Host header needs no resolver. */
function needsNoResolver(host = ""): boolean {
  try {
    const { hostname } = new URL(`http://${host}`);
    return hostname === "localhost" || isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
  } catch {
    return false;
  }
}

function lastOf(header: string | string[] | undefined): string {
  const list = String(header ?? "");
  return list.slice(list.lastIndexOf(",") + 1).trim();
}
