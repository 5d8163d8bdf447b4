export const MAX_SESSION_KEY_CHARS = 256;

const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Keys are compared in this form: trimmed, NFC. */
export const normalizeSessionKey = (key: string): string => key.trim().normalize("NFC");

/** Why a normalized key (or a prefix of keys) can be no session's; undefined: it can. */
export function sessionKeyFault(key: string): string | undefined {
  if (key.length > MAX_SESSION_KEY_CHARS) return `expected at most ${MAX_SESSION_KEY_CHARS} characters`;
  return FORBIDDEN.test(key) ? "control characters and lone surrogates are not allowed" : undefined;
}
