import { createHash, createHmac, randomInt } from "node:crypto";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { pipeline, type Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { LatentkitError } from "../../../base/errors.js";
import { suggest } from "../../../base/suggest.js";

/** SHA-256 of no bytes. */
const EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/** Longest silence of a connection. */
const IDLE_MS = 30_000;
/** Longest way from the first byte of a request to the headers of its response. */
const LONGEST_MS = 15 * 60_000;
const MOST_SOCKETS = 256;
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 200;
/** Most of a refusal that is read. */
const REFUSAL_BYTES = 64 * 1024;

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT";
  readonly key: string;
  readonly body?: { readonly bytes: number; readonly sha256: string; readonly type: string; read(): Readable };
  readonly signal?: AbortSignal;
}

export interface S3ClientOptions {
  readonly address: S3Address;
  readonly credentials: () => S3Credentials | Promise<S3Credentials>;
  /** Pause before the second attempt; each further one is twice as long. Default: 200 ms. */
  readonly pauseMs?: number;
}

/** Refusal of an S3 server: its status, and the code in its body where there is one. */
export class S3Refusal extends Error {
  readonly status: number;

  constructor(status: number, code: string | undefined, region: string | undefined) {
    const where = region === undefined ? "" : `, the bucket is in the region ${region}`;
    super(`${status}${code === undefined ? "" : ` ${code}`}${where}`);
    this.status = status;
  }

  get isTransient(): boolean {
    return this.status >= 500 || this.status === 429 || this.message.includes("RequestTimeout");
  }
}

/**
 * Sends requests to one bucket. A response with status 200 is returned as soon as its headers are there; others fail with
 * S3Refusal. Failures that may pass are tried again, four times in all.
 */
export function createS3Client({ address, credentials, pauseMs = FIRST_PAUSE_MS }: S3ClientOptions) {
  const { origin, basePath, region } = address;
  const isSecure = origin.protocol === "https:";
  const options = { keepAlive: true, maxSockets: MOST_SOCKETS };
  const agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options);

  async function attempt({ method, key, body, signal }: S3Request): Promise<IncomingMessage> {
    const path = basePath + encodeKey(key);
    const headers = signV4(
      {
        method,
        host: origin.host,
        path,
        headers: body === undefined ? {} : { "content-length": String(body.bytes), "content-type": body.type },
        payloadHash: body?.sha256 ?? EMPTY_HASH,
      },
      { credentials: await credentials(), region, now: new Date() },
    );
    const send = isSecure ? httpsRequest : httpRequest;
    const request = send(origin, { method, path, headers, agent, signal });
    let response: IncomingMessage | undefined;
    const content = body?.read();
    const arrived = new Promise<IncomingMessage>((resolve, reject) => {
      request.on("error", reject);
      request.on("response", (received) => {
        response = received;
        resolve(received);
      });
      if (content === undefined) request.end();
      else pipeline(content, request, (error) => error && reject(error));
    });
    // bytes that wait here wait for the reader, not for the server
    request.setTimeout(IDLE_MS, () => {
      if ((response?.readableLength ?? 0) === 0) request.destroy(new Error(`no data for ${IDLE_MS / 1000} s`));
    });
    const late = () => request.destroy(new Error(`no response for ${LONGEST_MS / 1000} s`));
    const timer = setTimeout(late, LONGEST_MS).unref();
    try {
      const received = await arrived;
      if (received.statusCode === 200) return received;
      throw await refusalOf(received);
    } catch (error) {
      request.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
      // a server may refuse before it has read the body
      if (response?.statusCode !== 200) content?.destroy();
    }
  }

  return {
    async send(request: S3Request): Promise<IncomingMessage> {
      for (let left = ATTEMPTS - 1, wait = pauseMs; ; left--, wait *= 2) {
        request.signal?.throwIfAborted();
        try {
          return await attempt(request);
        } catch (error) {
          if (request.signal?.aborted) throw request.signal.reason;
          if (left === 0 || (error instanceof S3Refusal && !error.isTransient)) throw error;
        }
        // jitter: workers that failed together do not come back together
        await pause(wait * (0.5 + randomInt(1000) / 1000), undefined, { signal: request.signal, ref: false }).catch(
          () => {},
        );
      }
    },
    close: () => agent.destroy(),
  };
}

async function refusalOf(response: IncomingMessage): Promise<S3Refusal> {
  const region = response.headers["x-amz-bucket-region"];
  let text = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      text += chunk;
      if (text.length > REFUSAL_BYTES) break;
    }
  } catch {
    // the status says enough
  }
  const code = /<Code>([A-Za-z0-9.]{1,64})<\/Code>/.exec(text)?.[1];
  const isName = typeof region === "string" && /^[a-z0-9-]{1,64}$/.test(region);
  return new S3Refusal(response.statusCode ?? 0, code, isName ? region : undefined);
}

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

/**
 * Returns the headers of a request with its signature, by AWS Signature Version 4 for S3: all of them are signed.
 *
 * @internal
 */
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

/** A key of an object as its path spells it: each byte but A-Z a-z 0-9 - . _ ~ and the slash is encoded. @internal */
export const encodeKey = (key: string): string =>
  encodeURIComponent(key)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();

type Environment = Readonly<Record<string, string | undefined>>;

/** Place of a store's objects. */
interface S3Address {
  readonly bucket: string;
  /** "" or a text that ends in "/". */
  readonly prefix: string;
  readonly region: string;
  /** Scheme, host and port to connect to; the bucket is part of the host or of `basePath`. */
  readonly origin: URL;
  /** Encoded path before every key: "/" or "/bucket/". */
  readonly basePath: string;
}

const KEYS = ["endpoint", "region", "path_style"];
const LONGEST_PREFIX = 512;

/**
 * Reads `s3://BUCKET/PREFIX?endpoint=…&region=…&path_style=…`; endpoint and region may come from the environment, under
 * AWS's names. Fails with config.invalid.
 */
export function readS3Address(text: string, env: Environment): S3Address {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "s3:") throw invalid("expected s3://BUCKET/PREFIX");
  if (url.username !== "" || url.password !== "" || url.port !== "" || url.hash !== "") {
    throw invalid("expected s3://BUCKET/PREFIX without user, password, port and fragment");
  }
  for (const key of url.searchParams.keys()) {
    if (KEYS.includes(key)) continue;
    const { hint } = suggest(key, KEYS, (near) => `"${near}"`);
    throw invalid(
      `expected only the parameters ${KEYS.join(", ")}, received ${JSON.stringify(key.slice(0, 40))}`,
      hint,
    );
  }
  const bucket = url.host;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw invalid("expected a bucket of 3 to 63 lower-case letters, digits, dots and hyphens");
  }
  const prefix = decodePrefix(url.pathname);
  const value = (key: string, ...variables: string[]) =>
    url.searchParams.get(key) || variables.map((name) => env[name]?.trim()).find(Boolean);
  const region = value("region", "AWS_REGION", "AWS_DEFAULT_REGION") ?? "us-east-1";
  if (!/^[a-z0-9-]{1,64}$/.test(region)) throw invalid(`expected a region as us-east-1, received ${quoted(region)}`);
  const endpoint = value("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  const style = url.searchParams.get("path_style") ?? "";
  if (!["", "true", "false"].includes(style))
    throw invalid(`expected path_style=true or false, received ${quoted(style)}`);
  // servers of one's own seldom have a name for each bucket, and certificates of AWS cover no name with further dots
  const hasPathStyle = style === "" ? endpoint !== undefined || bucket.includes(".") : style === "true";
  const origin = readEndpoint(endpoint ?? `https://s3.${region}.amazonaws.com`);
  if (!hasPathStyle) origin.hostname = `${bucket}.${origin.hostname}`;
  return { bucket, prefix, region, origin, basePath: hasPathStyle ? `/${bucket}/` : "/" };
}

/** Reads the credentials in AWS's variables. Fails with config.invalid, without a letter of them. */
export function readS3Credentials(env: Environment): S3Credentials {
  const [accessKeyId, secretAccessKey, sessionToken] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
  ].map((name) => env[name]?.trim() || undefined);
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw invalid("expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment");
  }
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}

function decodePrefix(pathname: string): string {
  let prefix: string;
  try {
    prefix = decodeURIComponent(pathname).replace(/^\//, "").replace(/\/$/, "");
  } catch {
    throw invalid("expected a prefix whose percent signs are encoded");
  }
  const isPlain = prefix === "" || prefix.split("/").every((part) => !["", ".", ".."].includes(part));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it refuses control characters
  if (!isPlain || Buffer.byteLength(prefix) > LONGEST_PREFIX || /[\u0000-\u001f\u007f]/.test(prefix)) {
    throw invalid(`expected a prefix of at most ${LONGEST_PREFIX} bytes without empty parts, "." and ".."`);
  }
  return prefix === "" ? "" : `${prefix}/`;
}

function readEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url !== undefined && url.pathname === "/" && url.search === "" && url.hash === "";
  if (!isOrigin || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw invalid("expected an endpoint as https://HOST:PORT, without path, user and password");
  }
  return url;
}

const quoted = (text: string) => JSON.stringify(text.slice(0, 40));

const invalid = (sentence: string, hint = "") => new LatentkitError("config.invalid", `files: ${sentence}.${hint}`);
