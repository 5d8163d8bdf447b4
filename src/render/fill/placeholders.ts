/** One pair of braces around text without braces: whatever the text, no character is read more than a few times. */
const PLACEHOLDER = /\{\{([^{}]+)\}\}/g;

/** Keys of the placeholders `{{key}}` in a text, in order, without the blanks around them. */
export function placeholderKeys(text: string): string[] {
  return text.includes("{{") ? Array.from(text.matchAll(PLACEHOLDER), ([, inside]) => keyOf(inside!)) : [];
}

/** Key of a text that is nothing but a placeholder; undefined for any other text. */
export function wholePlaceholder(text: string): string | undefined {
  if (!text.startsWith("{{") || !text.endsWith("}}")) return undefined;
  const inside = text.slice(2, -2);
  return inside === "" || /[{}]/.test(inside) ? undefined : keyOf(inside);
}

/** The text with its placeholders replaced in one pass: what a replacement holds is never replaced again. */
export function replacePlaceholders(text: string, replace: (mark: string, key: string) => string): string {
  return text.replace(PLACEHOLDER, (mark, inside: string) => replace(mark, keyOf(inside)));
}

/** A key of blanks alone is the last of them. */
const keyOf = (inside: string): string => inside.trim() || inside.at(-1)!;
