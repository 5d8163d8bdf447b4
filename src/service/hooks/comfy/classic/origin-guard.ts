import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { HookConfig } from "../../hook-config.js";
import { HookError } from "../../hook-error.js";
import { isAllowedOrigin } from "../../http/access/cross-origin.js";

// decision 312
/**
 * Refuses what a page of another site sends that the configuration does not allow: it could start prompts by a form or an
 * image, without any preflight. Where the API is open, also a name that its owner may have pointed at this machine. Fails
 * with forbidden.
 */
export function refuseForeign({ web }: Pick<HookConfig, "web">, req: IncomingMessage, access: "open" | "token"): void {
  const { host, origin, "sec-fetch-site": site = "none" } = req.headers;
  refuseForeignOrigin({ web }, req);
  if (origin === undefined && site !== "none" && site !== "same-origin") throw foreign();
  if (access !== "open" || isAddress(host)) return;
  if (host !== undefined && host === hostOf(web.public_url)) return;
  throw new HookError("forbidden", "expected an address, localhost or the host of public_url as Host");
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
function isAddress(host = ""): boolean {
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
