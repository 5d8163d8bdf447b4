const escaped = (characters: string): string => {
  let text = "";
  // one escape for each UTF-16 unit, as JSON has them
  for (let at = 0; at < characters.length; at++) {
    text += `\\u${characters.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }
  return text;
};

// decision 332
/**
 * Foreign text for one line of a terminal: what controls the terminal, has no width, turns the direction of text or breaks
 * the line becomes an escape of JSON, and so do halves of surrogate pairs.
 */
export const escapeControls = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped);

/** Foreign text for lines of a terminal: as escapeControls, but for line breaks and tabs. */
export const escapeWithinLines = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped);

/** Removes invisible characters, which could make two names look alike or hide how one ends. */
export const withoutFormat = (text: string): string => text.replace(/\p{Cf}/gu, "");
