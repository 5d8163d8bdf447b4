import { normalizeSessionKey, sessionKeyFault } from "../../../render/config/session-key.js";
import type { SessionPolicy } from "../hook-config.js";
import { HookError } from "../hook-error.js";

/**
 * Session key of a request. Both spellings of the field count; null and blank are absent.
 * Fails: session_key_override_disabled, session_key_prefix_denied, invalid_request.
 */
export function resolveSessionKey(
  policy: SessionPolicy,
  body: { sessionKey?: string | null; session_key?: string | null },
): string {
  const keys = [body.sessionKey, body.session_key]
    .map((key) => normalizeSessionKey(key ?? ""))
    .filter((key) => key !== "");
  const key = keys[0];
  if (key === undefined) return policy.defaultKey;
  if (!policy.isOverrideAllowed) throw new HookError("session_key_override_disabled");
  if (keys.some((other) => other !== key)) throw new HookError("invalid_request", "sessionKey and session_key differ");
  const fault = sessionKeyFault(key);
  if (fault !== undefined) throw new HookError("invalid_request", `sessionKey: ${fault}`);
  const isAllowed = policy.prefixes.length === 0 || policy.prefixes.some((prefix) => key.startsWith(prefix));
  if (!isAllowed) throw new HookError("session_key_prefix_denied");
  return key;
}
