import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createGunzip } from "node:zlib";
import type { Clock, Timer } from "../clock.js";
import type { Limits } from "../hook-config.js";
import { HookError, REFUSALS } from "../hook-error.js";
import { keepConnection } from "./connection.js";

/** Thrown where the client left before its body was complete or its response begun: nothing is sent and nothing runs. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** Signal that aborts with ClientGone once the client of a response leaves, or has it whole. */
export function clientSignal(res: ServerResponse): AbortSignal {
  const client = new AbortController();
  const leave = () => client.abort(new ClientGone("the client left"));
  if (res.destroyed) leave();
  else res.once("close", leave);
  return client.signal;
}

/** Marks requests whose client waits for "100 Continue", which `readJsonBody` sends. */
export const AWAITS_CONTINUE: unique symbol = Symbol("awaits 100 Continue");

export interface BodyLimits extends ArrivalLimits {
  readonly maxBytes: number;
  /** Whether the body may be a form instead of JSON. */
  readonly takesForms?: boolean;
  /** Whether the body may be a file of any type. */
  readonly takesAnyType?: boolean;
}

const FORM_TYPE = "application/x-www-form-urlencoded";
const JSON_TYPE = /^application\/(?:json|[a-z0-9!#$&^_.-]+\+json)$/;
/** Most values of a JSON body: each is read, checked and printed in the event loop. */
const MOST_VALUES = 131_072;
/** Bytes of JSON: `"`, `\\`, `,`, `[` and `{`. */
const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b] as const;
/** Bytes of a byte order mark. */
const MARK = Buffer.from("\ufeff");

/** Reads a JSON body: UTF-8 (a byte order mark is skipped). Fails as `readBodyBytes` does. */
export async function readJsonBody(req: IncomingMessage, res: ServerResponse, limits: BodyLimits): Promise<unknown> {
  const text = decodeJson(await readBodyBytes(req, res, limits));
  try {
    return JSON.parse(text);
  } catch (cause) {
    // the parser's own message quotes the body
    throw new HookError("invalid_request", "the body is not valid JSON", { cause });
  }
}

/**
 * Reads the bytes of a body, plain or gzip, `maxBytes` at most before and after decompression. Fails:
 * unsupported_media_type before any byte is read, payload_too_large, request_timeout, invalid_request, ClientGone.
 */
export async function readBodyBytes(req: IncomingMessage, res: ServerResponse, limits: BodyLimits): Promise<Buffer> {
  const isGzip = checkHeaders(req, limits);
  if ((req as { [AWAITS_CONTINUE]?: boolean })[AWAITS_CONTINUE]) res.writeContinue();
  const bytes = await collect(req, isGzip, limits);
  keepConnection(res);
  if (bytes.length === 0) throw new HookError("invalid_request", "the body is empty, expected a JSON object");
  return bytes;
}

/** Decodes UTF-8 without its byte order mark. Fails with invalid_request. */
export function decodeBody(bytes: Buffer): string {
  // a tenth of the time of a TextDecoder that checks
  if (!isUtf8(bytes)) throw new HookError("invalid_request", "the body is not valid UTF-8");
  return bytes.toString("utf8", bytes.subarray(0, MARK.length).equals(MARK) ? MARK.length : 0);
}

/** Decodes a JSON text as `decodeBody` does. Fails with invalid_request where it has more than 131,072 values. */
export function decodeJson(bytes: Buffer): string {
  let values = 1;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) isText = !isText;
    else if (isText) at += byte === BACKSLASH ? 1 : 0;
    else if ((byte === COMMA || byte === BRACKET || byte === BRACE) && ++values > MOST_VALUES) {
      throw new HookError("invalid_request", `the body: expected at most ${MOST_VALUES} values`);
    }
  }
  return decodeBody(bytes);
}

/** The refusal of a body of more than `most` bytes; `where`: the part of it that is meant. */
export const tooLarge = (most: number, where = ""): HookError =>
  new HookError("payload_too_large", `${REFUSALS.payload_too_large.sentence}: expected at most ${most} bytes${where}`);

const mediaTypeOf = ({ headers }: IncomingMessage) =>
  (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();

export const isForm = (req: IncomingMessage): boolean => mediaTypeOf(req) === FORM_TYPE;

/** Checks content type and length. Returns whether the body is compressed. */
function checkHeaders(req: IncomingMessage, { maxBytes, takesForms, takesAnyType }: BodyLimits): boolean {
  const [, ...parameters] = (req.headers["content-type"] ?? "").split(";").map((part) => part.trim());
  const isRead = takesAnyType || (takesForms && isForm(req));
  if (!isRead && !JSON_TYPE.test(mediaTypeOf(req))) throw new HookError("unsupported_media_type");
  for (const parameter of parameters) {
    const charset = /^charset\s*=\s*"?([^"]*)"?$/i.exec(parameter)?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) throw new HookError("unsupported_media_type");
  }
  const encoding = (req.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (!["identity", "gzip", "x-gzip"].includes(encoding)) {
    const headers = { "Accept-Encoding": "gzip" };
    throw new HookError("unsupported_media_type", "the body may be compressed with gzip only", { headers });
  }
  if (req.readableDidRead) {
    const sentence = "the application has already read the request body: mount the hook router before its body parsers";
    throw new HookError("internal", sentence);
  }
  if (Number(req.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  return encoding !== "identity";
}

function collect(req: IncomingMessage, isGzip: boolean, limits: BodyLimits): Promise<Buffer> {
  const { maxBytes } = limits;
  return new Promise((resolve, reject) => {
    const gunzip = isGzip ? createGunzip() : undefined;
    const source = gunzip ?? req;
    const chunks: Buffer[] = [];
    let arrived = 0;
    let decoded = 0;
    const arrival = new Arrival(limits);
    const settle = (finish: () => void) => {
      arrival.end(0);
      req.off("data", onArrival).off("close", onClose);
      source.off("data", onData).off("end", onEnd);
      if (gunzip !== undefined) req.unpipe(gunzip);
      gunzip?.destroy();
      req.pause();
      finish();
    };
    const fail = (error: Error) => settle(() => reject(error));
    const onLate = () => fail(new HookError("request_timeout"));
    // limits the compressed bytes too: an endless stream of empty gzip blocks inflates to nothing
    const onArrival = (chunk: Buffer) => {
      arrived += chunk.length;
      if (arrived > maxBytes) return fail(tooLarge(maxBytes));
      arrival.end(chunk.length);
      arrival.wait(onLate);
    };
    const onData = (chunk: Buffer) => {
      decoded += chunk.length;
      if (decoded > maxBytes) fail(tooLarge(maxBytes));
      else chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(Buffer.concat(chunks)));
    const onClose = () => {
      if (!req.complete) fail(new ClientGone("the client left"));
    };
    gunzip?.on("error", () => fail(new HookError("invalid_request", "the body is not valid gzip")));
    // a reset connection emits this and "close"; without a listener it would be an uncaught error
    req.on("error", onClose);
    req.on("close", onClose);
    req.on("data", onArrival);
    source.on("data", onData).on("end", onEnd);
    arrival.wait(onLate);
    if (gunzip !== undefined) req.pipe(gunzip);
  });
}

/** Limits of a body's time. */
interface ArrivalLimits {
  /** Longest wait for bytes, and the time before the rate counts. */
  readonly silenceMs: number;
  /** Least bytes a second, on average. */
  readonly bytesPerSecond: number;
  readonly clock: Clock;
}

// decisions: A body may take as long as its size allows
/** The limits of every body, small or large: how long it may take follows from its size alone. */
export const arrivalLimits = (
  { header_seconds, body_bytes_per_second: bytesPerSecond }: Limits,
  clock: Clock,
): ArrivalLimits => ({ silenceMs: header_seconds * 1000, bytesPerSecond, clock });

/** The time of one body. Waits for its client count, what is done with its bytes does not. */
export class Arrival {
  readonly #limits: ArrivalLimits;
  #leftMs: number;
  #since = 0;
  #timer: Timer | undefined;
  /** Changes with the beginning and the end of each wait. */
  #turn = 0;

  constructor(limits: ArrivalLimits) {
    this.#limits = limits;
    this.#leftMs = limits.silenceMs;
  }

  /** Begins a wait for bytes; calls `onLate` where it takes too long. */
  wait(onLate: () => void): void {
    const { clock, silenceMs } = this.#limits;
    this.#since = clock.monotonic();
    this.#turn += 1;
    const turn = this.#turn;
    const check = () => {
      if (this.#turn === turn) onLate();
    };
    // bytes that came while the event loop was held up are read before the check
    this.#timer = clock.setTimer(Math.min(silenceMs, this.#leftMs), () => setImmediate(check));
  }

  /** Ends the wait. Its bytes allow as much time as they may take. */
  end(bytes: number): void {
    const { clock, bytesPerSecond } = this.#limits;
    this.#timer?.cancel();
    this.#turn += 1;
    this.#leftMs += (bytes / bytesPerSecond) * 1000 - (clock.monotonic() - this.#since);
  }
}
