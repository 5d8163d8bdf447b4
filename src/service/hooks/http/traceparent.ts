import type { IncomingMessage } from "node:http";

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Trace context of a request (W3C Trace Context, version 00); another header is no reason to refuse a run. */
export function traceparentOf({ headers }: IncomingMessage): string | undefined {
  const { traceparent } = headers;
  const isValid = typeof traceparent === "string" && TRACEPARENT.test(traceparent);
  return isValid ? traceparent : undefined;
}
