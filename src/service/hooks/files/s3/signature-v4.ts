import { createHash, createHmac } from "node:crypto";

/** Keys of an account, as AWS names them. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Third part of temporary credentials. */
  readonly sessionToken?: string;
}

export interface RequestToSign {
  readonly method: string;
  readonly host: string;
  /** As it goes on the wire: encoded once, without a query. */
  readonly path: string;
  /** Further headers, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hexadecimal. */
  readonly payloadHash: string;
}

const ALGORITHM = "AWS4-HMAC-SHA256";

/** Returns the headers of a request with its signature, by AWS Signature Version 4 for S3: all of them are signed. */
export function signV4(
  { method, host, path, headers, payloadHash }: RequestToSign,
  { credentials, region, now }: { credentials: S3Credentials; region: string; now: Date },
): Record<string, string> {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const time = now.toISOString().replace(/[-:]|\.\d+/g, "");
  const day = time.slice(0, 8);
  const all: Record<string, string> = {
    ...headers,
    host,
    "x-amz-content-sha256": payloadHash,
    "x-amz-date": time,
    ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
  };
  const names = Object.keys(all).sort();
  const signedHeaders = names.join(";");
  const canonicalHeaders = names.map((name) => `${name}:${all[name]!.trim().replace(/ +/g, " ")}\n`).join("");
  const canonical = [method, path, "", canonicalHeaders, signedHeaders, payloadHash].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = [ALGORITHM, time, scope, sha256(canonical)].join("\n");
  const key = [day, region, "s3", "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(key, text).toString("hex");
  const authorization = `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`;
  return { ...all, authorization };
}

/** A key of an object as its path spells it: each byte but A-Z a-z 0-9 - . _ ~ and the slash is encoded. */
export const encodeKey = (key: string): string =>
  encodeURIComponent(key)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
