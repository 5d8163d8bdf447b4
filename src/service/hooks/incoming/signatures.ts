import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { type SignatureScheme, standardKey } from "../../../render/config/incoming.js";

/** Headers of a request by their names in lower case, as Node has them. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Most signatures that a request may carry; senders send one for each of their secrets. */
const MOST_SIGNATURES = 16;

/** Thrown for a request whose signature headers cannot be right: its message says why. */
export class SignatureFault extends Error {
  override readonly name = "SignatureFault";
}

/** The signature headers of one request, before its body is known. */
export interface Claim {
  /** Whether one of the signatures is that of the body, with one of the secrets; in constant time. */
  holdsFor(body: Uint8Array): boolean;
}

interface SignedHeaders {
  /** Text that is signed before the body. */
  readonly prefix: string;
  /** Seconds since 1970, as signed; undefined where the scheme signs no time. */
  readonly time?: string;
  /** Signatures as they would be printed by `print`. */
  readonly signatures: readonly string[];
}

interface Scheme {
  readonly read: (header: (name: string) => string, has: (name: string) => boolean) => SignedHeaders;
  readonly keyOf: (secret: string) => string | Buffer;
  readonly print: (digest: Buffer) => string;
}

/** The headers of Standard Webhooks, and their names before there was a standard, which Svix still sends. */
const STANDARD_SETS = [
  ["webhook-id", "webhook-timestamp", "webhook-signature"],
  ["svix-id", "svix-timestamp", "svix-signature"],
] as const;

const asText = (secret: string) => secret;

/** Senders compute HMAC-SHA-256 over a prefix and the body; the schemes differ in headers, prefix, key and spelling. */
const SCHEMES: Readonly<Record<SignatureScheme, Scheme>> = {
  "standard-webhooks": {
    read(header, has) {
      // one set or the other: of a mixture, the part that counts could be unsigned
      const set = STANDARD_SETS.find((set) => set.some(has)) ?? STANDARD_SETS[0];
      const [id, time, signatures] = set.map(header) as [string, string, string];
      return { prefix: `${id}.${time}.`, time, signatures: signatures.split(" ") };
    },
    keyOf: (secret) => standardKey(secret)!,
    print: (digest) => `v1,${digest.toString("base64")}`,
  },
  github: {
    read: (header) => ({ prefix: "", signatures: [header("x-hub-signature-256")] }),
    keyOf: asText,
    print: (digest) => `sha256=${digest.toString("hex")}`,
  },
  stripe: {
    read(header) {
      const fields = header("stripe-signature").split(",");
      const valuesOf = (key: string) =>
        fields.filter((f) => f.startsWith(`${key}=`)).map((f) => f.slice(key.length + 1));
      const [time = "", ...others] = valuesOf("t");
      return { prefix: `${time}.`, time: others.length === 0 ? time : "", signatures: valuesOf("v1") };
    },
    keyOf: asText,
    print: (digest) => digest.toString("hex"),
  },
  slack: {
    read(header) {
      const time = header("x-slack-request-timestamp");
      return { prefix: `v0:${time}:`, time, signatures: [header("x-slack-signature")] };
    },
    keyOf: asText,
    print: (digest) => `v0=${digest.toString("hex")}`,
  },
};

/**
 * Returns the check of a sender's signatures. It reads the headers of a request, and fails with SignatureFault where one is
 * missing or the signed time is more than `replaySeconds` from `nowMs`.
 */
export function signatureCheck(options: {
  scheme: SignatureScheme;
  secrets: readonly string[];
  replaySeconds: number;
}): (headers: Headers, nowMs: number) => Claim {
  const { read, keyOf, print } = SCHEMES[options.scheme];
  const keys = options.secrets.map(keyOf);
  return (headers, nowMs) => {
    const { prefix, time, signatures } = read(
      (name) => oneHeader(headers, name),
      (name) => headers[name] !== undefined,
    );
    if (time !== undefined) checkTime(time, nowMs, options.replaySeconds);
    if (signatures.length > MOST_SIGNATURES) throw new SignatureFault(`more than ${MOST_SIGNATURES} signatures`);
    const candidates = signatures.map(sha256);
    return {
      holdsFor(body) {
        let isValid = false;
        // no early exit: the time must not reveal which secret, or how much of a signature, was right
        for (const key of keys) {
          const expected = sha256(print(createHmac("sha256", key).update(prefix).update(body).digest()));
          for (const candidate of candidates) if (timingSafeEqual(candidate, expected)) isValid = true;
        }
        return isValid;
      },
    };
  };
}

function oneHeader(headers: Headers, name: string): string {
  const value = headers[name];
  if (typeof value !== "string" || value === "") throw new SignatureFault(`the header ${name} is missing`);
  return value;
}

function checkTime(time: string, nowMs: number, replaySeconds: number): void {
  if (!/^\d{1,12}$/.test(time)) throw new SignatureFault("the timestamp is not a time in whole seconds");
  const lateSeconds = nowMs / 1000 - Number(time);
  if (lateSeconds > replaySeconds) throw new SignatureFault("the timestamp is too old");
  if (lateSeconds < -replaySeconds) throw new SignatureFault("the timestamp is in the future");
}

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();
