import { randomInt } from "node:crypto";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { pipeline, type Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { S3Address } from "./s3-address.js";
import { encodeKey, type S3Credentials, signV4 } from "./signature-v4.js";

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
    const { promise, resolve, reject } = deferred<IncomingMessage>();
    const send = isSecure ? httpsRequest : httpRequest;
    const request = send(origin, { method, path, headers, agent, signal });
    let response: IncomingMessage | undefined;
    request.on("error", reject);
    request.on("response", (received) => {
      response = received;
      resolve(received);
    });
    // bytes that wait here wait for the reader, not for the server
    request.setTimeout(IDLE_MS, () => {
      if ((response?.readableLength ?? 0) === 0) request.destroy(new Error(`no byte for ${IDLE_MS / 1000} s`));
    });
    const content = body?.read();
    if (content === undefined) request.end();
    else pipeline(content, request, (error) => error && reject(error));
    const late = () => request.destroy(new Error(`no response for ${LONGEST_MS / 1000} s`));
    const timer = setTimeout(late, LONGEST_MS).unref();
    try {
      const received = await promise;
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

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
