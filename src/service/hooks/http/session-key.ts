import { describe } from "../../../base/errors.js";
import { normalizeSessionKey, sessionKeyFault } from "../../../render/config/session-key.js";
import type { SessionPolicy } from "../hook-config.js";
import { HookError, REFUSALS } from "../hook-error.js";

/** Most prefixes that a refusal lists. */
const LISTED_PREFIXES = 5;

/**
 * Session key of a request, undefined where it names none. Both spellings of the field count; null and blank are absent.
 * Fails: session_key_override_disabled, session_key_prefix_denied, invalid_request.
 */
export function requestedSessionKey(
  policy: SessionPolicy,
  body: { sessionKey?: string | null; session_key?: string | null },
): string | undefined {
  const fields = (["sessionKey", "session_key"] as const).flatMap((field) => {
    const key = normalizeSessionKey(body[field] ?? "");
    return key === "" ? [] : [{ field, key }];
  });
  const [first] = fields;
  if (first === undefined) return undefined;
  if (!policy.isOverrideAllowed) {
    throw refusal("session_key_override_disabled", `"${first.field}" needs hooks_allow_request_session_key: true`);
  }
  if (fields.some(({ key }) => key !== first.key))
    throw new HookError("invalid_request", "sessionKey and session_key differ");
  return checkSessionKey(policy, first.key, first.field);
}

// decision 246
/** Session key from a sender's template, undefined where it is absent or blank. Fails as `requestedSessionKey` does. */
export function mappedSessionKey(policy: SessionPolicy, mapped: string | undefined): string | undefined {
  const key = normalizeSessionKey(mapped ?? "");
  return key === "" ? undefined : checkSessionKey(policy, key, "session_key");
}

function checkSessionKey({ prefixes }: SessionPolicy, key: string, field: string): string {
  const fault = sessionKeyFault(key);
  if (fault !== undefined) throw new HookError("invalid_request", `${field}: ${fault}`);
  const isAllowed = prefixes.length === 0 || prefixes.some((prefix) => key.startsWith(prefix));
  if (isAllowed) return key;
  const listed = prefixes.slice(0, LISTED_PREFIXES).map((prefix) => describe(prefix));
  const allowed = listed.join(", ") + (prefixes.length > LISTED_PREFIXES ? " and others" : "");
  throw refusal(
    "session_key_prefix_denied",
    `"${field}" must begin with one of hooks_allowed_session_key_prefixes, ${allowed}`,
  );
}

/** The refusal's own sentence, which clients may look for, and the key of the configuration that decides. */
const refusal = (kind: "session_key_override_disabled" | "session_key_prefix_denied", why: string): HookError =>
  new HookError(kind, `${REFUSALS[kind].sentence}: ${why} (channels.web of the configuration)`);
