import type { IncomingMessage } from "node:http";

/** Sentence that refuses a request with no Host header, or with several: proxies choose another one than this service. */
export function hostRefusal({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  const count = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host").length;
  if (count === 1 || (count === 0 && httpVersion === "1.0")) return undefined;
  return count === 0 ? "the Host header is missing" : "more than one Host header";
}
