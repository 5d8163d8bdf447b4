import type { Call } from "../http/call.js";
import type { HookContext } from "../http/context.js";

/** Address of the router for the client of a request, without a slash at its end. */
export function baseOf({ config }: HookContext, { req }: Pick<Call, "req">): string {
  const { public_url, trust_proxy } = config.web;
  if (public_url !== undefined) return public_url;
  const forwarded = (name: string) => {
    const list = trust_proxy ? String(req.headers[name] ?? "") : "";
    return list.slice(list.lastIndexOf(",") + 1).trim() || undefined;
  };
  const scheme = forwarded("x-forwarded-proto") === "https" ? "https" : "http";
  const host = forwarded("x-forwarded-host") ?? req.headers.host ?? "localhost";
  return `${scheme}://${host}${req.baseUrl}`;
}
