/** Characters that are dropped: those of category C but tab and line ends, and U+FFFD. */
const DROPPED = /(?![\t\n\r])[\p{C}\ufffd]/gu;
/** Ideographs, by the ranges that the reference lists. */
const IDEOGRAPH =
  /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
/** Normalising n marks in a row takes n² steps; no writing has a tenth of these in a row. */
const MARKS = /[^\p{M}]*\p{M}{0,128}/gu;
const SPACE = /\s+/;

/**
 * Splits a text into words as the reference cleans it (transformers 4 without ftfy): drops control characters, sets spaces
 * around ideographs, splits at whitespace, composes (NFC) and lower-cases each word by itself: a sigma at its end is final.
 */
export function cleanWords(text: string): string[] {
  const spaced = text.replace(DROPPED, "").replace(IDEOGRAPH, " $& ");
  const composed = spaced.replace(MARKS, (run) => run.normalize("NFC"));
  const words = composed.split(SPACE).filter((word) => word !== "");
  return words.map((word) => word.toLowerCase());
}
