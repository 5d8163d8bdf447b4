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
  return checkSessionKey(policy, key, "sessionKey");
}

// decision 246
/** Session key from a sender's template; absent and blank mean the default. Fails as `resolveSessionKey` does. */
export function mappedSessionKey(policy: SessionPolicy, mapped: string | undefined): string {
  const key = normalizeSessionKey(mapped ?? "");
  return key === "" ? policy.defaultKey : checkSessionKey(policy, key, "session_key");
}

function checkSessionKey({ prefixes }: SessionPolicy, key: string, field: string): string {
  const fault = sessionKeyFault(key);
  if (fault !== undefined) throw new HookError("invalid_request", `${field}: ${fault}`);
  const isAllowed = prefixes.length === 0 || prefixes.some((prefix) => key.startsWith(prefix));
  if (!isAllowed) throw new HookError("session_key_prefix_denied");
  return key;
}
