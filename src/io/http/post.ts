import { randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { onAbort } from "../../base/abort.js";
import { type ErrorCode, LatentkitError } from "../../base/errors.js";
import { connectionFault, connectOptions } from "./public-address.js";

export interface PostRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly clock: () => Date;
  /** Limit of each attempt, up to the last byte of the response. Default: 120 s. */
  readonly timeoutMs?: number;
  /** Limit of the response body. Default: 64 MiB. */
  readonly maxBytes?: number;
}

export interface PostResponse {
  readonly status: number;
  /** Media type without parameters, lower case; "" if the server names none. */
  readonly type: string;
  readonly body: Buffer;
}

const TIMEOUT_MS = 120_000;
const MAX_BYTES = 64 * 2 ** 20;
const BUSY: ReadonlySet<number> = new Set([429, 503]);
const DEFAULT_RETRY_MS = 1_000;
/** Longest Retry-After that is waited for. */
const MAX_RETRY_MS = 60_000;

/**
 * Posts a body and reads the response, bounded in time and size. After 429 or 503 it retries once after Retry-After.
 * Redirects are refused, so that no header reaches another server. No message contains a header.
 * Fails with remote.failed, remote.timeout and the signal's reason.
 */
export async function post(request: PostRequest): Promise<PostResponse> {
  const first = await attempt(request);
  if (!BUSY.has(first.status)) return first;
  const waitMs = retryAfterMs(first.retryAfter, request.clock());
  if (waitMs > MAX_RETRY_MS) return first;
  await pause(waitMs, request.signal);
  return attempt(request);
}

async function attempt(request: PostRequest): Promise<PostResponse & { retryAfter: string | null }> {
  const { url, headers, body, signal, timeoutMs = TIMEOUT_MS } = request;
  const limit = new AbortController();
  signal.throwIfAborted();
  const unsubscribe = onAbort(signal, () => limit.abort(signal.reason));
  const late = failed(`no response within ${timeoutMs / 1000} s`, "remote.timeout");
  const timer = setTimeout(() => limit.abort(late), timeoutMs);
  const guard = <T>(work: Promise<T>) => untilAborted(work, limit.signal);
  try {
    const response = await guard(
      request.fetch(url, { method: "POST", headers, body, redirect: "manual", signal: limit.signal }),
    );
    if (response.status === 0 || (response.status >= 300 && response.status < 400)) {
      throw failed(`the server answered with a redirect (${response.status}), which is not followed`);
    }
    return {
      status: response.status,
      type: (response.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase(),
      retryAfter: response.headers.get("retry-after"),
      body: await readBody(response, request.maxBytes ?? MAX_BYTES, guard),
    };
  } catch (error) {
    // fetch has its own error for an abort
    if (limit.signal.aborted) throw limit.signal.reason;
    if (error instanceof LatentkitError) throw error;
    throw failed(`the connection failed (${reasonOf(error)})`);
  } finally {
    clearTimeout(timer);
    unsubscribe();
    // stops the download of a body that is too large
    limit.abort();
  }
}

async function readBody(
  response: Response,
  maxBytes: number,
  guard: <T>(work: Promise<T>) => Promise<T>,
): Promise<Buffer> {
  const tooLarge = () => failed(`expected a response of at most ${maxBytes} bytes, received more`);
  if (Number(response.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = reader === undefined ? { done: true } : await guard(reader.read());
    if (done || value === undefined) return Buffer.concat(chunks);
    size += value.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(value);
  }
}

/** Reads Retry-After, a number of seconds or a date. */
function retryAfterMs(header: string | null, now: Date): number {
  if (header === null) return DEFAULT_RETRY_MS;
  const ms = /^\s*\d+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now.getTime();
  return Number.isNaN(ms) ? DEFAULT_RETRY_MS : Math.max(0, ms);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  try {
    const waited = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await untilAborted(waited, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects as soon as the signal aborts, even if the work ignores it. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let unsubscribe = () => {};
  const aborted = new Promise<never>((_, reject) => {
    unsubscribe = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    unsubscribe();
  }
}

const failed = (reason: string, code: ErrorCode = "remote.failed"): LatentkitError =>
  new LatentkitError(code, `Remote image service: ${reason}.`);

/** A code such as ECONNREFUSED; never the message, which may contain what was sent. */
function reasonOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } } | null)?.cause;
  return typeof cause?.code === "string" ? cause.code : error instanceof Error ? error.name : "unknown reason";
}

// Built by hand: FormData turns "\n" into CRLF, the original does not.
/** One part of a multipart/form-data body: a text field, or a file with its name and type. */
export type FormPart =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly filename: string; readonly type: string; readonly bytes: Uint8Array };

/**
 * Encodes a multipart/form-data body, parts in order and values byte for byte: FormData would turn line ends into CRLF.
 * Names and file names must have no quotes or line ends.
 */
export function encodeMultipart(parts: readonly FormPart[]): { body: Uint8Array<ArrayBuffer>; contentType: string } {
  const boundary = `latentkit-${randomBytes(18).toString("hex")}`;
  const chunks = parts.flatMap((part) => {
    const isFile = "bytes" in part;
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${part.name}"${
      isFile ? `; filename="${part.filename}"\r\nContent-Type: ${part.type}` : ""
    }\r\n\r\n`;
    return [Buffer.from(head), isFile ? part.bytes : Buffer.from(part.value), Buffer.from("\r\n")];
  });
  const body = Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]);
  return { body, contentType: `multipart/form-data; boundary=${boundary}` };
}

export interface Notification {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** IP addresses that may be connected to. */
  readonly isAllowed: (ip: string) => boolean;
  /** Limit of the whole exchange. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Further options of the request, such as a certificate authority. */
  readonly request?: Pick<RequestOptions, "ca">;
}

export interface Acknowledgement {
  readonly status: number;
  /** The header Retry-After. */
  readonly retryAfter: string | undefined;
}

/** Why there was no response, as a clause without anything that the other side sent. */
export class NotifyFault extends Error {
  override readonly name = "NotifyFault";
}

/** Most bytes of a response that are received, so that the connection ends as the other side expects. */
const MOST_ACKNOWLEDGEMENT_BYTES = 65_536;

/**
 * Posts a body and returns the response's status. The addresses of the name are checked when the connection is made; a
 * redirect is a response like any other. Rejects with NotifyFault.
 */
export async function notify(notification: Notification): Promise<Acknowledgement> {
  const { url, headers, body, isAllowed, timeoutMs, signal } = notification;
  const connection = connectOptions(url, isAllowed, () => new NotifyFault("the address is not allowed"));
  return new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? httpsRequest : httpRequest;
    const length = String(Buffer.byteLength(body));
    const sent = request(url, {
      ...notification.request,
      ...connection,
      method: "POST",
      headers: { ...headers, "content-length": length, "user-agent": "latentkit" },
    });
    let acknowledgement: Acknowledgement | undefined;
    const end = (fault?: NotifyFault) => {
      clearTimeout(timer);
      unsubscribe();
      sent.destroy();
      // what comes after the status changes nothing
      if (acknowledgement !== undefined) resolve(acknowledgement);
      else reject(fault ?? new NotifyFault("the connection ended early"));
    };
    const timer = setTimeout(() => end(new NotifyFault(`no response within ${timeoutMs / 1000} s`)), timeoutMs);
    const unsubscribe = onAbort(signal, () => end(new NotifyFault("the service is shutting down")));
    sent.on("error", (error) => end(faultOf(error)));
    sent.on("close", () => end());
    sent.on("response", (response) => {
      acknowledgement = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_ACKNOWLEDGEMENT_BYTES) end();
      });
      response.on("error", () => end());
      response.on("end", () => end());
    });
    sent.end(body);
  });
}

const faultOf = (error: unknown): NotifyFault =>
  error instanceof NotifyFault ? error : new NotifyFault(`the connection failed (${connectionFault(error)})`);
