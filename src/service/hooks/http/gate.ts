import { HookError } from "../hook-error.js";
import { clientKey } from "./access/client-address.js";
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
