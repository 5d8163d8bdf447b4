import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { BARE_TOKEN_HEADERS, TOKEN_HEADERS } from "../../../log.js";

const BEARER = /^bearer(?:[ \t]+(.*))?$/is;

interface Secret {
  readonly token: string;
  readonly id: string;
  /** Digests of the bytes that a client may send: the token in UTF-8, and in Latin-1 where that can encode it. */
  readonly digests: readonly Buffer[];
}

export type Tokens = ReturnType<typeof createTokens>;

/**
 * The configured hook tokens: the only copies of the secrets; callers get digests and signatures. `configured` is the value
 * of `hooks_token`: blank values and values that are no strings count as absent.
 */
export function createTokens(configured: unknown) {
  const values: unknown[] = Array.isArray(configured) ? configured : [configured];
  const secrets = values
    .filter((token): token is string => typeof token === "string" && token.trim() !== "")
    .map((token) => toSecret(token.trim()));
  return {
    configured: secrets.length > 0,
    /** Whether a value is neither text nor absent. */
    hasIgnored: values.some((value) => typeof value !== "string" && value !== undefined && value !== null),
    /** Characters of the shortest token; Infinity if none is configured. */
    shortest: Math.min(...secrets.map(({ token }) => [...token].length)),
    /** Returns the id of the request's token, for scopes and rates; null: missing or wrong. */
    identify(rawHeaders: readonly string[]): string | null {
      const credential = readCredential(rawHeaders);
      const digest = sha256(credential ?? Buffer.alloc(0));
      let id: string | null = null;
      // no early exit: the time must not reveal which token, or how much of it, was right
      for (const secret of secrets) {
        for (const expected of secret.digests) if (timingSafeEqual(digest, expected)) id = secret.id;
      }
      return credential === null ? null : id;
    },
    /** Signs with the first configured token: base64url of HMAC-SHA-256. */
    sign: (text: string): string => hmac(secrets[0]?.token ?? "", text).toString("base64url"),
    /** Accepts the signature of any configured token: URLs survive a rotation. */
    verify(text: string, signature: string): boolean {
      const digest = sha256(Buffer.from(signature));
      let isValid = false;
      for (const { token } of secrets) {
        const expected = sha256(Buffer.from(hmac(token, text).toString("base64url")));
        if (timingSafeEqual(digest, expected)) isValid = true;
      }
      return isValid;
    },
  };
}

/** Bytes of the request's one credential, blanks trimmed; null where there is none or it is ambiguous. */
function readCredential(rawHeaders: readonly string[]): Buffer | null {
  const values = new Map<string, string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (!TOKEN_HEADERS.some((header) => header === name)) continue;
    if (values.has(name)) return null;
    // only blanks of HTTP: String.trim would cut a UTF-8 byte that reads as a Latin-1 no-break space
    values.set(name, rawHeaders[i + 1]!.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, ""));
  }
  const bearer = BEARER.exec(values.get("authorization") ?? "")?.[1];
  const credential = [bearer, ...BARE_TOKEN_HEADERS.map((name) => values.get(name))].find((value) => value);
  return credential === undefined ? null : Buffer.from(credential, "latin1");
}

function toSecret(token: string): Secret {
  const utf8 = Buffer.from(token, "utf8");
  const latin1 = Buffer.from(token, "latin1");
  const isLatin1 = latin1.toString("latin1") === token;
  const id = sha256(Buffer.from(`latentkit token id\n${token}`))
    .toString("hex")
    .slice(0, 16);
  return { token, id, digests: (isLatin1 ? [utf8, latin1] : [utf8]).map(sha256) };
}

const sha256 = (bytes: Buffer): Buffer => createHash("sha256").update(bytes).digest();
const hmac = (key: string, text: string): Buffer => createHmac("sha256", key).update(text).digest();

const SECONDS = /^[1-9]\d{0,11}$/;

export type UrlSigner = ReturnType<typeof createUrlSigner>;

/** Signs URLs: a reader without the token (an EventSource) may read one run until `expires`. */
export const createUrlSigner = (tokens: Pick<Tokens, "sign" | "verify">) => ({
  /** Returns the query of a run's URLs: `expires` (Unix seconds) and `signature`. */
  sign(runId: string, expiresSeconds: number): { expires: string; signature: string } {
    const expires = String(Math.ceil(expiresSeconds));
    return { expires, signature: tokens.sign(signedText(runId, expires)) };
  },
  /** Whether the query has exactly one valid, unexpired signature for the run. `nowMs`: wall time. */
  check(runId: string, query: URLSearchParams, nowMs: number): boolean {
    const expires = query.getAll("expires");
    const signatures = query.getAll("signature");
    if (expires.length !== 1 || signatures.length !== 1 || !SECONDS.test(expires[0]!)) return false;
    const isValid = tokens.verify(signedText(runId, expires[0]!), signatures[0]!);
    return isValid && Number(expires[0]) * 1000 > nowMs;
  },
});

// the first line makes the signature worthless for any other purpose
const signedText = (runId: string, expires: string) => `latentkit run url\n${expires}\n${runId}`;
