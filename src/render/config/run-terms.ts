/** Range of the priority of a run, a whole number. */
export const PRIORITY = { least: -100, most: 100 } as const;

/** Bounds of the tags of a run. */
export const TAGS = { most: 16, chars: 64 } as const;

export const TAG_FAULT = `expected texts of 1 to ${TAGS.chars} characters without control characters`;

/** Whether a value is a tag: control characters, halves of surrogate pairs and blank texts are not. */
export const isTag = (value: unknown): value is string =>
  typeof value === "string" && value.length <= TAGS.chars && value.trim() !== "" && !/[\p{Cc}\p{Cs}]/u.test(value);

export const MAX_SESSION_KEY_CHARS = 256;

const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Keys are compared in this form: trimmed, NFC. */
export const normalizeSessionKey = (key: string): string => key.trim().normalize("NFC");

/** Why a normalized key, or a prefix, cannot be that of a session; undefined if it can. */
export function sessionKeyFault(key: string): string | undefined {
  if (key.length > MAX_SESSION_KEY_CHARS) return `expected at most ${MAX_SESSION_KEY_CHARS} characters`;
  return FORBIDDEN.test(key) ? "control characters and lone surrogates are not allowed" : undefined;
}
