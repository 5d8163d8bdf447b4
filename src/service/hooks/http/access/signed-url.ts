import type { Tokens } from "./token.js";

/** Signs URLs: a reader without the token (an EventSource) may read one run until `expires`. */
export interface UrlSigner {
  /** Returns the query of a run's URLs: `expires` (Unix seconds) and `signature`. */
  sign(runId: string, expiresSeconds: number): { expires: string; signature: string };
  /** Whether the query has exactly one valid, unexpired signature for the run. `nowMs`: wall time. */
  check(runId: string, query: URLSearchParams, nowMs: number): boolean;
}

const SECONDS = /^[1-9]\d{0,11}$/;

export function createUrlSigner(tokens: Tokens): UrlSigner {
  const signature = (runId: string, expires: string) => tokens.sign(signedText(runId, expires));
  return {
    sign(runId, expiresSeconds) {
      const expires = String(Math.ceil(expiresSeconds));
      return { expires, signature: signature(runId, expires) };
    },
    check(runId, query, nowMs) {
      const expires = query.getAll("expires");
      const signatures = query.getAll("signature");
      if (expires.length !== 1 || signatures.length !== 1 || !SECONDS.test(expires[0]!)) return false;
      const isValid = tokens.verify(signedText(runId, expires[0]!), signatures[0]!);
      return isValid && Number(expires[0]) * 1000 > nowMs;
    },
  };
}

// the first line makes the signature worthless for any other purpose
const signedText = (runId: string, expires: string) => `latentkit run url\n${expires}\n${runId}`;
