import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import { HookError } from "../hook-error.js";
import { type Access, type Call, runIdOf } from "./call.js";
import type { ProbeContext } from "./context.js";

/**
 * Admits or refuses a request before a byte of its body is read. Returns the id of its token, "" where it needs none.
 * Fails: hooks_not_configured, invalid_request (token in the URL), unauthorized, auth_rate_limited.
 */
export function passGate(context: ProbeContext, access: Access, call: Pick<Call, "req" | "query" | "params">): string {
  if (access === "open") return "";
  const { tokens } = context;
  if (!tokens.configured) throw new HookError("hooks_not_configured");
  if (call.query.has("token")) {
    throw new HookError("invalid_request", "send the token in a header: URLs end up in logs");
  }
  if (access === "sender") return "";
  const tokenId = access === "run" ? enterRun(context, call) : tokens.identify(call.req.rawHeaders);
  const isSigned = access === "asset" && context.signer.check(call.params.id ?? "", call.query, context.runs.now());
  if (isSigned) return tokenId ?? "";
  if (tokenId !== null) return tokenId;
  throw countFailure(context, call.req);
}

/** Counts a failed attempt of the request's client. Returns the refusal to throw; `sentence` replaces that of a 401. */
export function countFailure(
  { config, budget, metrics }: ProbeContext,
  req: Call["req"],
  sentence?: string,
): HookError {
  const refusal = budget.refusal(clientKey(req, config.web.trust_proxy), sentence);
  metrics.authFailed(refusal.kind === "unauthorized" ? "refused" : "limited");
  return refusal;
}

function enterRun(context: ProbeContext, call: Pick<Call, "req" | "query" | "params">): string | null {
  const mode = context.config.web.stream_auth;
  if (mode === "none") return "";
  const tokenId = mode === "token" ? context.tokens.identify(call.req.rawHeaders) : null;
  if (tokenId !== null) return tokenId;
  const runId = runIdOf(call);
  const isSigned = runId !== undefined && context.signer.check(runId, call.query, context.runs.now());
  return isSigned ? "" : null;
}

// The last X-Forwarded-For address counts: the nearest proxy wrote it.
/**
 * Key of a client: its IPv4 address, IPv6-mapped or not, or the /64 of its IPv6 address. With `trustProxy` it is the
 * address that the nearest proxy appended to X-Forwarded-For; the text before it is the client's own claim.
 *
 * @internal
 */
export function clientKey(req: IncomingMessage, trustProxy: boolean): string {
  const forwarded = trustProxy ? req.headers["x-forwarded-for"] : undefined;
  const nearest = String(forwarded ?? "")
    .split(",")
    .at(-1)!
    .trim();
  return addressKey(withoutPort(nearest)) ?? addressKey(req.socket.remoteAddress ?? "") ?? "unknown";
}

/** Removes the port that some proxies append: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(address: string): string {
  const [, v6, v4] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}

/** Key of one address; undefined where the text is none. Exported for its test. @internal */
export function addressKey(address: string): string | undefined {
  const plain = address.replace(/%.*/s, "");
  if (isIPv4(plain)) return plain;
  if (!isIPv6(plain)) return undefined;
  const groups = expand(plain);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight 16-bit groups of a valid IPv6 address. */
function expand(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const before = groupsOf(head);
  const after = groupsOf(tail ?? "");
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function groupsOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a, b, c, d] = group.split(".").map(Number) as [number, number, number, number];
    return [(a << 8) | b, (c << 8) | d];
  });
}

/** Sentence that refuses a request with no Host header, or with several: proxies choose another one than this service. */
export function hostRefusal({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  const count = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host").length;
  if (count === 1 || (count === 0 && httpVersion === "1.0")) return undefined;
  return count === 0 ? "the Host header is missing" : "more than one Host header";
}
