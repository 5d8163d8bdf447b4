import { loadZod } from "../../base/lazy-packages.js";

const MOST_ORIGINS = 100;

/** Schema of a list of origins, each as a browser sends it: in lower case, without the scheme's own port. */
export function allowedOrigins() {
  const { z } = loadZod();
  const origin = z.string().transform((text, { addIssue }) => {
    const origin = originOf(text);
    if (origin === undefined) {
      addIssue("expected an origin, scheme://host or scheme://host:port, as https://gallery.example.com");
      return z.NEVER;
    }
    return origin;
  });
  return z.array(origin).max(MOST_ORIGINS);
}

/** Undefined for what is more or less than an origin. */
function originOf(text: string): string | undefined {
  const [, scheme, host] = /^([a-z][a-z0-9+.-]*):\/\/([^\s/?#@\\*,]+)$/i.exec(text) ?? [];
  if (scheme === undefined || host === undefined || !URL.canParse(text)) return undefined;
  const { origin } = new URL(text);
  // of a scheme that browsers alone know, as those of their extensions
  return origin === "null" ? text.toLowerCase() : origin;
}
