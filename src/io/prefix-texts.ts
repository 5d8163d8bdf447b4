const DATE = "date:";
/** Letters of a date's parts, which stand alone or doubled. */
const PARTS: Readonly<Record<string, (date: Date) => number>> = {
  d: (date) => date.getDate(),
  M: (date) => date.getMonth() + 1,
  h: (date) => date.getHours(),
  m: (date) => date.getMinutes(),
  s: (date) => date.getSeconds(),
};

/** Replaces what stands between percent signs, as ComfyUI's editor does; what `replace` returns nothing for stays. */
export function fillTexts(text: string, replace: (name: string) => string | undefined): string {
  let filled = "";
  for (let at = 0; at < text.length; ) {
    const start = text.indexOf("%", at);
    const end = start < 0 ? -1 : text.indexOf("%", start + 1);
    if (end < 0) return filled + text.slice(at);
    filled += text.slice(at, start);
    // of two signs with nothing between, the second may begin a name
    at = end === start + 1 ? end : end + 1;
    filled += (at > end && replace(text.slice(start + 1, end))) || text.slice(start, at);
  }
  return filled;
}

/** Local time for date:yyyy-MM-dd: d, M, h, m, s (with a zero in front where doubled), yy and yyyy; else undefined. */
export function dateOf(name: string, now: Date): string | undefined {
  if (!name.startsWith(DATE)) return undefined;
  const format = name.slice(DATE.length);
  const year = String(now.getFullYear());
  let text = "";
  for (let at = 0; at < format.length; ) {
    const letter = format[at]!;
    const longest = letter === "y" ? 4 : letter in PARTS ? 2 : 1;
    let length = 1;
    while (length < longest && format[at + length] === letter) length++;
    if (letter in PARTS) text += String(PARTS[letter]!(now)).padStart(length, "0");
    else if (letter === "y" && length % 2 === 0) text += year.slice(-length);
    else text += letter.repeat(length);
    at += length;
  }
  return text;
}

/** Texts %Node.widget% of a prefix, which stand for the value of a widget. */
export function widgetTexts(prefix: string): string[] {
  const found: string[] = [];
  fillTexts(prefix, (name) => {
    const [title, widget, ...more] = name.split(".");
    const isTitle = /\p{L}/u.test(title!) && !/[/\\]/.test(title!);
    if (!name.startsWith(DATE) && isTitle && widget !== undefined && more.length === 0 && /^[A-Za-z_]\w*$/.test(widget))
      found.push(`%${name}%`);
    return undefined;
  });
  return found;
}
