import { createHash, createHmac, timingSafeEqual } from "node:crypto";

const TOKEN_HEADERS = ["authorization", "x-compat-token", "x-service-hook-token"] as const;
const BEARER = /^bearer(?:[ \t]+(.*))?$/is;

/** The configured hook tokens. Holds the only copies of the secrets; hands out digests and signatures. */
export interface Tokens {
  readonly configured: boolean;
  /** Characters of the shortest token; Infinity where none is configured. */
  readonly shortest: number;
  /** Id of the configured token that the request carries, for scopes and rates; null: missing or wrong. */
  identify(rawHeaders: readonly string[]): string | null;
  /** base64url HMAC-SHA-256 keyed by the first configured token. */
  sign(text: string): string;
  /** Any configured token may have signed: rotation keeps URLs alive. */
  verify(text: string, signature: string): boolean;
}

interface Secret {
  readonly token: string;
  readonly id: string;
  /** Of the bytes a client may send for the token: UTF-8, and Latin-1 where it can be written so. */
  readonly digests: readonly Buffer[];
}

/** `configured` is the value of `hooks_token`: blank values and values that are no strings count as not there. */
export function createTokens(configured: unknown): Tokens {
  const secrets = (Array.isArray(configured) ? configured : [configured])
    .filter((token): token is string => typeof token === "string" && token.trim() !== "")
    .map((token) => toSecret(token.trim()));
  const identify = (rawHeaders: readonly string[]) => {
    const credential = readCredential(rawHeaders);
    const digest = sha256(credential ?? Buffer.alloc(0));
    let id: string | null = null;
    // no early exit: the time tells nothing about which token, or how much of it, was right
    for (const secret of secrets) {
      for (const expected of secret.digests) if (timingSafeEqual(digest, expected)) id = secret.id;
    }
    return credential === null ? null : id;
  };
  return {
    configured: secrets.length > 0,
    shortest: Math.min(...secrets.map(({ token }) => [...token].length)),
    identify,
    sign: (text) => hmac(secrets[0]?.token ?? "", text).toString("base64url"),
    verify(text, signature) {
      const given = sha256(Buffer.from(signature));
      let isGood = false;
      for (const { token } of secrets) {
        const expected = sha256(Buffer.from(hmac(token, text).toString("base64url")));
        if (timingSafeEqual(given, expected)) isGood = true;
      }
      return isGood;
    },
  };
}

/** Bytes of the one credential a request carries, blanks trimmed; null where there is none or it is ambiguous. */
function readCredential(rawHeaders: readonly string[]): Buffer | null {
  const found = new Map<string, string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (!TOKEN_HEADERS.some((header) => header === name)) continue;
    if (found.has(name)) return null;
    // only blanks of HTTP: String.trim would cut a UTF-8 byte that reads as a Latin-1 no-break space
    found.set(name, rawHeaders[i + 1]!.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, ""));
  }
  const bearer = BEARER.exec(found.get("authorization") ?? "")?.[1];
  for (const value of [bearer, found.get("x-compat-token"), found.get("x-service-hook-token")]) {
    if (value) return Buffer.from(value, "latin1");
  }
  return null;
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
