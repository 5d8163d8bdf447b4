import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HookError } from "../hook-error.js";

/** 1 to 255 visible ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Key under which a repeated request gets the first one's response: header Idempotency-Key, else webhook-id, else the
 * body's. undefined: none. Fails with invalid_request.
 */
export function readIdempotencyKey(req: IncomingMessage, fromBody: string | null | undefined): string | undefined {
  const key = req.headers["idempotency-key"] ?? req.headers["webhook-id"] ?? fromBody ?? undefined;
  return key === undefined ? undefined : checkIdempotencyKey(key);
}

/** Fails with invalid_request: a key that protects nothing must not pass silently. */
export function checkIdempotencyKey(key: unknown): string {
  if (typeof key !== "string" || !IDEMPOTENCY_KEY.test(key)) {
    throw new HookError("invalid_request", "the idempotency key must be 1 to 255 visible ASCII characters");
  }
  return key;
}

/** Digest of a request's payload; spelling, order and unknown fields of the body do not count. */
export const hashPayload = (payload: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(payload)).digest("hex");

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Trace context of a request (W3C Trace Context, version 00); another header is no reason to refuse a run. */
export function traceparentOf({ headers }: IncomingMessage): string | undefined {
  const { traceparent } = headers;
  const isValid = typeof traceparent === "string" && TRACEPARENT.test(traceparent);
  return isValid ? traceparent : undefined;
}

/**
 * Seconds of the preference `wait` in the header Prefer (RFC 7240); undefined where it is absent or no number. The first
 * one counts, and other preferences are none of ours.
 */
export function waitSeconds(prefer: string | undefined): number | undefined {
  for (const preference of headerList(prefer ?? "")) {
    const [name = "", value = ""] = preference
      .split(";", 1)[0]!
      .split("=")
      .map((part) => part.trim());
    if (name.toLowerCase() !== "wait") continue;
    const [, quoted, bare] = /^(?:"(\d+)"|(\d+))$/.exec(value) ?? [];
    const seconds = quoted ?? bare;
    return seconds === undefined ? undefined : Number(seconds);
  }
  return undefined;
}

/** Media ranges with their weights (RFC 9110). */
export type Accepted = ReadonlyMap<string, number>;

/** Reads the header Accept; a range with an invalid weight is left out. */
export function readAccept(accept: string): Accepted {
  const weights = new Map<string, number>();
  for (const range of headerList(accept)) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, "") ?? "1";
    if (!/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) continue;
    weights.set(type, Math.max(Number(weight), weights.get(type) ?? 0));
  }
  return weights;
}

/** Weight of a type by its own range or that of its kind; `*` for all types does not count. */
export const weightOf = (accepted: Accepted, type: string): number =>
  accepted.get(type) ?? accepted.get(`${type.split("/")[0]}/*`) ?? 0;

/** Elements of a header that is a list; commas within quoted strings separate nothing. */
const headerList = (value: string): string[] => value.match(/(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g) ?? [];
