/** Characters as JSON escapes them, one escape for each UTF-16 unit. */
export const escaped = (characters: string): string =>
  characters.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

// A name that ends otherwise than it looks is worse than an emoji family that falls apart.
/**
 * Foreign text for one line of a terminal: characters that control the terminal, have no width, turn the direction of text
 * or break the line become escapes of JSON, and so do lone surrogates.
 */
export const escapeControls = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped);

/** As escapeControls, but keeps line breaks and tabs. */
export const escapeWithinLines = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped);

/** Removes invisible characters, which could make two names look alike or hide how one ends. */
export const withoutFormat = (text: string): string => text.replace(/\p{Cf}/gu, "");
