import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { HookConfig } from "../../hook-config.js";
import { HookError } from "../../hook-error.js";

// decision 321
/**
 * Refuses what a page of another site sends: it could start prompts by a form or an image, without any preflight. With
 * `comfy_classic: open` also a name that its owner may have pointed at this machine. Fails with invalid_request, status 403.
 */
export function refuseForeign({ web }: HookConfig, req: IncomingMessage): void {
  const { host = "", origin, "sec-fetch-site": site = "none" } = req.headers;
  const own = new Set([host, hostOf(web.public_url)]);
  if (web.trust_proxy) own.add(lastOf(req.headers["x-forwarded-host"]));
  if (origin !== undefined ? !own.has(hostOf(origin)) : !["none", "same-origin"].includes(String(site))) {
    throw forbidden("a page of another site may not call this service");
  }
  if (web.comfy_classic === "open" && !isAddress(host) && host !== hostOf(web.public_url)) {
    throw forbidden("expected an address, localhost or the host of public_url as Host");
  }
}

const forbidden = (sentence: string) => new HookError("invalid_request", sentence, { status: 403, code: "forbidden" });

/** Host and port of a URL; a text that equals no header where it is none. */
function hostOf(url: string | undefined): string {
  try {
    return new URL(url ?? "").host || "none ";
  } catch {
    return "none ";
  }
}

/** Whether a Host header needs no resolver. */
function isAddress(host: string): boolean {
  try {
    const { hostname } = new URL(`http://${host}`);
    return hostname === "localhost" || isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
  } catch {
    return false;
  }
}

const lastOf = (header: string | string[] | undefined): string => {
  const list = String(header ?? "");
  return list.slice(list.lastIndexOf(",") + 1).trim() || "none ";
};
